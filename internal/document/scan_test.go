package document

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzScan holds skip to encoding/json: the same texts are JSON to both, and Decode reads the same from them.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` [1, -0.5e+7, "a\u00e9\n", null, true, false] `, `{"name": "a", "Name": "b"}`, `{"name":null,"list":[{"name":"x","value":{"a":[1]}}]}`,
		`{"name":"ungefähr\"acht","list":null,"text":{"k":"v"},"number":9223372036854775807}`, `{"list":[{"value":1},{}],"list":[{"name":"z"}]}`,
		`{"name":7}`, `01`, `1.`, `"\x"`, "\"a\tb\"", `{"a":1,}`, `[1,]`, `{"a" 1}`, `nul`, `{"l\u0069st":[]}`, "\"\xff\"", `12345678"`,
		`{"inner":{"name":"n","plain":"aGVsbG8="}}`, `{"inner":{"plain":"aGVs\nbG8="}}`, `{"inner":{"plain":"a"}}`, `[{"a":[],"b":{}},[[]],  "x" ]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		end := skip(data, space(data, 0), 0)
		if understood := end >= 0 && space(data, end) == len(data); understood != json.Valid(data) {
			t.Fatalf("%q: understood %v, valid %v", data, understood, json.Valid(data))
		}
		if end >= 0 {
			var want bytes.Buffer
			if err := json.Indent(&want, bytes.Trim(data, " \t\r\n"), "", "    "); err == nil {
				if got, err := Indent(nil, data); err != nil || !bytes.Equal(got, want.Bytes()) {
					t.Fatalf("%q:\n got %s, %v\nwant %s", data, got, err, want.Bytes())
				}
			}
		}
		type inner struct {
			Name  string          `json:"name"`
			Value json.RawMessage `json:"value"`
		}
		type outer struct {
			Name   string            `json:"name"`
			List   []inner           `json:"list"`
			Text   map[string]string `json:"text"`
			Number int64             `json:"number"`
			Inner  struct {
				Name  string `json:"name"`
				Plain []byte `json:"plain"`
			} `json:"inner"`
		}
		var got, want outer
		gotErr, wantErr := Decode(data, &got), json.Unmarshal(data, &want)
		if (gotErr == nil) != (wantErr == nil) || gotErr != nil && gotErr.Error() != wantErr.Error() || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q:\n got %+v %v\nwant %+v %v", data, got, gotErr, want, wantErr)
		}
	})
}
