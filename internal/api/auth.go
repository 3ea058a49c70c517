package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	"signalbox/internal/secret"
)

// minToken is how long a token must be, in characters. 32 random ones cannot be
// guessed, however often somebody tries.
const minToken = 32

// tokens are the hashes of what a request must bring one of. The texts are not kept.
type tokens [][sha256.Size]byte

func newTokens(values []secret.Value) (tokens, error) {
	var out tokens
	for i, v := range values {
		text := v.Reveal()
		if len(text) < minToken {
			return nil, fmt.Errorf("token %d of the API has %d characters; give at least %d, such as the output of: openssl rand -hex 32", i+1, len(text), minToken)
		}
		// Others cannot be sent as a bearer token: RFC 6750, section 2.1.
		if strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=") != "" {
			return nil, fmt.Errorf("token %d of the API has a character that cannot be sent; use letters, digits and any of -._~+/=, such as the output of: openssl rand -hex 32", i+1)
		}
		out = append(out, sha256.Sum256([]byte(text)))
	}
	return out, nil
}

// has reports whether a text is one of the tokens. How long that takes tells nothing
// of them: hashes are compared, all of them, and each whole.
func (t tokens) has(text string) bool {
	sum := sha256.Sum256([]byte(text))
	found := 0
	for i := range t {
		found |= subtle.ConstantTimeCompare(t[i][:], sum[:])
	}
	return found == 1
}

// bearer returns the token that a request brings, and what is wrong where it brings
// none.
func bearer(r *http.Request) (token, problem string) {
	given := r.Header.Values("Authorization")
	switch len(given) {
	case 0:
		return "", "The request brings no token; send the header: Authorization: Bearer TOKEN"
	case 1:
	default:
		return "", "The request has the header Authorization more than once; send one: Authorization: Bearer TOKEN"
	}
	scheme, token, ok := strings.Cut(given[0], " ")
	token = strings.TrimSpace(token)
	if !ok || token == "" || !strings.EqualFold(scheme, "Bearer") {
		return "", "The header Authorization is not of the form: Bearer TOKEN"
	}
	return token, ""
}
