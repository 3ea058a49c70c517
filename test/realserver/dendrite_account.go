package realserver

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// registerPath is where whoever knows the shared secret makes accounts, invented by Synapse.
const registerPath = "/_synapse/admin/v1/register"

// MatrixAccount is an account on a homeserver and one login of it, with its secrets.
type MatrixAccount struct {
	ID       string // Such as "@alice:localhost".
	Password string
	// Token and Device are those of the login; another program needs a login of its own.
	Token  string
	Device string
}

// CreateAccount makes an account whose id begins with the name, which is in small letters, and logs it in.
func (d *Dendrite) CreateAccount(ctx context.Context, name string) (MatrixAccount, error) {
	var nonce struct {
		Nonce string `json:"nonce"`
	}
	if err := d.ask(ctx, http.MethodGet, registerPath, "", nil, &nonce); err != nil {
		return MatrixAccount{}, fmt.Errorf("create account %s: %w", name, err)
	}
	a := MatrixAccount{Password: randomSecret()}
	mac := hmac.New(sha1.New, []byte(d.secret))
	mac.Write([]byte(strings.Join([]string{nonce.Nonce, name, a.Password, "notadmin"}, "\x00")))
	body := map[string]any{
		"nonce": nonce.Nonce, "username": name, "displayname": name, "password": a.Password, "admin": false,
		"mac": hex.EncodeToString(mac.Sum(nil)),
	}
	var created login
	if err := d.ask(ctx, http.MethodPost, registerPath, "", body, &created); err != nil {
		return MatrixAccount{}, fmt.Errorf("create account %s: %w", name, err)
	}
	a.ID, a.Token, a.Device = created.UserID, created.AccessToken, created.DeviceID
	return a, nil
}

// login is what a homeserver tells of a new login.
type login struct {
	UserID      string `json:"user_id"`
	AccessToken string `json:"access_token"`
	DeviceID    string `json:"device_id"`
}

// Login logs an account in once more and returns it with the new token. A device of an earlier login, if
// one is named, gets the new token instead of the old one; else it is a new device.
func (d *Dendrite) Login(ctx context.Context, a MatrixAccount, device string) (MatrixAccount, error) {
	body := map[string]any{
		"type": "m.login.password", "password": a.Password,
		"identifier": map[string]any{"type": "m.id.user", "user": a.ID},
	}
	if device != "" {
		body["device_id"] = device
	}
	var again login
	if err := d.ask(ctx, http.MethodPost, "/_matrix/client/v3/login", "", body, &again); err != nil {
		return MatrixAccount{}, fmt.Errorf("log %s in: %w", a.ID, err)
	}
	a.Token, a.Device = again.AccessToken, again.DeviceID
	return a, nil
}

// Logout ends the login of an account: its token is refused from now on.
func (d *Dendrite) Logout(ctx context.Context, a MatrixAccount) error {
	if err := d.ask(ctx, http.MethodPost, "/_matrix/client/v3/logout", a.Token, map[string]any{}, nil); err != nil {
		return fmt.Errorf("log %s out: %w", a.ID, err)
	}
	return nil
}

// ask sends a request of a minute at most and decodes the answer.
func (d *Dendrite) ask(ctx context.Context, method, path, token string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, d.url+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s: %s", path, resp.Status, lastLines(string(said), 3))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(said, answer)
}
