package yamlfile

import (
	"fmt"

	"github.com/invopop/jsonschema"
	"go.yaml.in/yaml/v3"
)

// Strings are texts in a file: one alone, or a list.
type Strings []string

// UnmarshalYAML implements [yaml.Unmarshaler].
func (s *Strings) UnmarshalYAML(node *yaml.Node) error {
	items := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		items = node.Content
	}
	var texts []string
	for _, item := range items {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return fmt.Errorf("expected text or a list of texts, found %s", describe(item))
		}
		texts = append(texts, item.Value)
	}
	*s = texts
	return nil
}

// JSONSchema describes the written form.
func (Strings) JSONSchema() *jsonschema.Schema {
	text := &jsonschema.Schema{Type: "string"}
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{text, {Type: "array", Items: text}}}
}
