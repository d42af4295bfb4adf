package manager

import "errors"

// electionKind is a kind of leader election.
type electionKind string

const (
	byLease electionKind = "lease"
	forLife electionKind = "life"
)

// UnmarshalText reads a kind from a flag.
func (k *electionKind) UnmarshalText(text []byte) error {
	switch kind := electionKind(text); kind {
	case byLease, forLife:
		*k = kind
		return nil
	}
	return errors.New("it is lease or life")
}

// MarshalText is the kind as a flag has it.
func (k electionKind) MarshalText() ([]byte, error) { return []byte(k), nil }
