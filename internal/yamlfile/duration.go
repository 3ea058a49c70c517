package yamlfile

import (
	"fmt"
	"time"

	"github.com/invopop/jsonschema"
	"go.yaml.in/yaml/v3"
)

// Duration is a length of time in a file, such as "90s", "10m" or "36h". It is
// never negative.
type Duration time.Duration

// D returns the duration as the standard library has it.
func (d Duration) D() time.Duration { return time.Duration(d) }

// String returns the duration as the standard library writes it.
func (d Duration) String() string { return time.Duration(d).String() }

// UnmarshalYAML implements [yaml.Unmarshaler].
func (d *Duration) UnmarshalYAML(node *yaml.Node) error {
	v, err := time.ParseDuration(node.Value)
	if err != nil || node.Kind != yaml.ScalarNode {
		return fmt.Errorf("%s is not a duration; write it like 90s, 10m or 36h", describe(node))
	}
	if v < 0 {
		return fmt.Errorf("%s is negative", node.Value)
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML implements [yaml.Marshaler].
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

// JSONSchema describes the written form.
func (Duration) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type:     "string",
		Pattern:  `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`,
		Examples: []any{"90s", "10m", "36h"},
	}
}
