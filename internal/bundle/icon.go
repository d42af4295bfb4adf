package bundle

import (
	"bytes"
	"net/http"
)

const svg = "image/svg+xml"

// IconTypes are the media types that the icon of a CSV or of an olm.package may have, by the ending of its file in lower case.
var IconTypes = map[string]string{".svg": svg, ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif"}

// IsIcon reports whether data is a picture of the media type, which is one of IconTypes.
func IsIcon(data []byte, mediaType string) bool {
	if mediaType == svg { // which is text to who looks at its first bytes
		return bytes.Contains(data, []byte("<svg"))
	}
	return http.DetectContentType(data) == mediaType
}
