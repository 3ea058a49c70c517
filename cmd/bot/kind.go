package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"signalbox/internal/yamlfile"
)

// kindFlag adds --kind, which takes some of all kinds.
func kindFlag[K ~string](cmd *cobra.Command, given *[]string, all []K) {
	cmd.Flags().StringSliceVar(given, "kind", nil, "only these kinds: "+strings.Join(texts(all), ", "))
}

// kindsOf reads what was given with --kind.
func kindsOf[K ~string](given []string, all []K) ([]K, error) {
	var out []K
	for _, k := range given {
		if !slices.Contains(all, K(k)) {
			return nil, fmt.Errorf("--kind %q is not known: %s", k, yamlfile.Suggest(k, texts(all)))
		}
		out = append(out, K(k))
	}
	return out, nil
}

func texts[K ~string](all []K) []string {
	out := make([]string, len(all))
	for i, k := range all {
		out[i] = string(k)
	}
	return out
}
