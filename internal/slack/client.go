package slack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxAnswer bounds an answer of the Web API, in bytes. The longest is a page of a
// history.
const maxAnswer = 16 << 20

func newHTTPClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:   timeout,
		Transport: bounded{http.DefaultTransport},
		// The API does not redirect, and the token goes nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded bounds the answers of a transport.
type bounded struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = limited{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	return resp, nil
}

type limited struct {
	io.Reader
	io.Closer
}

// call calls a method of the Web API once. It bounds, counts and translates: the
// error is one that the package chat knows, or a plain one.
func (a *Adapter) call(ctx context.Context, method string, do func(context.Context) error) error {
	bound, cancel := context.WithTimeoutCause(ctx, a.config.Timeout, fmt.Errorf("no answer within %s", a.config.Timeout))
	defer cancel()
	start := time.Now()
	err := do(bound)
	code := codeOf(err)
	a.metrics.observe(method, code, time.Since(start))
	switch {
	case err == nil:
		a.health.setToken("", nil)
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	case bound.Err() != nil:
		return fmt.Errorf("%s: %w", method, context.Cause(bound))
	}
	err = a.silent(translate(method, err))
	switch {
	case revoked[code]:
		a.health.setToken(code, err)
	case method == "auth.test":
		a.health.setToken(reasonUnreachable, err)
	}
	return err
}

// silent makes sure that an error does not tell a token.
func (a *Adapter) silent(err error) error {
	for _, token := range []string{a.config.BotToken.Reveal(), a.config.AppToken.Reveal()} {
		if token != "" && strings.Contains(err.Error(), token) {
			return errors.New("the error of a call to Slack holds a token and is not shown")
		}
	}
	return err
}
