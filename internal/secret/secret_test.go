package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"signalbox/internal/secret"
)

func TestNeverShown(t *testing.T) {
	const text = "hunter2-token"
	v := secret.New(text)
	holder := struct {
		Token   secret.Value
		Pointer *secret.Value
	}{v, &v}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("start", "token", v, "holder", holder)
	encoded, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	for name, shown := range map[string]string{
		"%v": fmt.Sprintf("%v", holder), "%+v": fmt.Sprintf("%+v", holder), "%#v": fmt.Sprintf("%#v", v),
		"%s": fmt.Sprintf("%s %s", v, holder), "%q": fmt.Sprintf("%q", v), "%x": fmt.Sprintf("%x", v),
		"JSON": string(encoded), "log": log.String(),
	} {
		if strings.Contains(shown, text) || strings.Contains(shown, fmt.Sprintf("%x", text)) {
			t.Errorf("%s shows the secret: %s", name, shown)
		}
	}
	if v.Reveal() != text || v.Empty() || !secret.New("").Empty() {
		t.Error("the secret lost its text")
	}
}

func TestCannotBeDecoded(t *testing.T) {
	var v secret.Value
	err := json.Unmarshal([]byte(`"hunter2"`), &v)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error = %v, want one that does not repeat the text", err)
	}
}
