package gitea

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// send sends JSON, and returns the answer whatever its code. The request is
// given as "POST /path", with a path below /api/v1 whose segments are escaped
// already. The caller reads the body.
func (c *Client) send(ctx context.Context, over *http.Client, info call, request string, in any) (*http.Response, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	method, path, _ := strings.Cut(request, " ")
	req, err := http.NewRequestWithContext(withCall(ctx, info), method, c.root+"/api/v1"+path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "token "+c.token.Reveal())
	req.Header.Set("User-Agent", c.userAgent)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	resp, err := over.Do(req)
	if transport, ok := errors.AsType[*url.Error](err); ok {
		return nil, transport.Err
	}
	return resp, err
}

// sendJSON sends JSON, see [Client.send], and reads the JSON of a success,
// unless into is nil.
func (c *Client) sendJSON(ctx context.Context, info call, request string, in, into any) error {
	resp, err := c.send(ctx, c.http, info, request, in)
	if err != nil {
		return err
	}
	body := readAll(resp)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return c.answer(resp, body)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}
