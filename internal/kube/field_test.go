package kube

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSteady(t *testing.T) {
	tests := map[string][2]string{
		"a measured duration":        {"health check failed after 30.022035531s: timeout", "health check failed after 30s: timeout"},
		"minutes and hours":          {"failed after 1h2m3.5s", "failed after 1h2m3s"},
		"below a second":             {"passed in 40.003181ms", "passed in 0s"},
		"a whole duration stays":     {"with a timeout of 30s", "with a timeout of 30s"},
		"a temporary folder":         {"stat /tmp/kustomization-3163104425/nope: no such file", "stat /tmp/kustomization-*/nope: no such file"},
		"a local port":               {"read udp 10.244.0.9:45617->10.96.0.10:53: i/o timeout", "read udp 10.244.0.9->10.96.0.10:53: i/o timeout"},
		"numbers stay":               {"revision 3 of 5, port 8080, v1.2.3, 72a2c53b", "revision 3 of 5, port 8080, v1.2.3, 72a2c53b"},
		"a password in a URL":        {"clone 'https://bob:hunter2@git.example.org/x': denied", "clone 'https://git.example.org/x': denied"},
		"a mail address stays":       {"signed by bob@example.org", "signed by bob@example.org"},
		"control characters":         {"\x1b[31mred\x00\r\nline\ttab\n", "[31mred\nline\ttab"},
		"bytes that are not UTF-8":   {"a\xffb", "a\uFFFDb"},
		"nothing":                    {"", ""},
		"a revision is no temporary": {"main@sha1:72a2c53bc14c3744581604b139ae03e9f119b07c", "main@sha1:72a2c53bc14c3744581604b139ae03e9f119b07c"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := steady(tt[0]); got != tt[1] {
				t.Errorf("steady(%q) = %q, want %q", tt[0], got, tt[1])
			}
		})
	}
}

func TestCleanCutsBetweenRunes(t *testing.T) {
	for n := maxMessage - 4; n < maxMessage+4; n++ {
		got := clean(strings.Repeat("a", n)+strings.Repeat("ä", 10), maxMessage)
		if len(got) > maxMessage || !utf8.ValidString(got) {
			t.Errorf("%d bytes, valid UTF-8 %v", len(got), utf8.ValidString(got))
		}
		if !strings.HasSuffix(got, cut) {
			t.Errorf("a text that was cut does not end in %q but in %q", cut, got[len(got)-6:])
		}
	}
}

func FuzzSteady(f *testing.F) {
	f.Add("health check failed after 30.022035531s")
	f.Add("/tmp/a-1234\xff:12->x https://a:b@c 1h2m3.4s")
	f.Fuzz(func(t *testing.T, s string) {
		got := steady(s)
		if len(got) > maxMessage || !utf8.ValidString(got) {
			t.Errorf("%d bytes, valid UTF-8 %v", len(got), utf8.ValidString(got))
		}
	})
}
