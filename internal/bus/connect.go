package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// commonOptions are the options of every connection. The function is called
// each time after the connection was made again.
func commonOptions(log *slog.Logger, m *metrics, reconnected func()) []nats.Option {
	return []nats.Option{
		nats.Name("signalbox"),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, time.Second),
		nats.PingInterval(10 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if nc.IsClosed() {
				return
			}
			m.connected.Set(0)
			log.Warn("connection to NATS lost", "error", err)
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			m.connected.Set(1)
			m.reconnects.Inc()
			log.Info("connected to NATS again", "server", nc.ConnectedUrlRedacted())
			reconnected()
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			level := slog.LevelError
			if _, ok := errors.AsType[*net.OpError](err); ok {
				level = slog.LevelDebug // a broken connection, which is told above
			}
			log.Log(context.Background(), level, "NATS reports an error", "error", err, "subject", subject)
		}),
	}
}

func connectExternal(cfg External, opts []nats.Option) (*nats.Conn, error) {
	opts = append(opts, nats.Timeout(5*time.Second))
	switch {
	case cfg.CredentialsFile != "":
		opts = append(opts, nats.UserCredentials(cfg.CredentialsFile))
	case cfg.NKeyFile != "":
		o, err := nats.NkeyOptionFromSeed(cfg.NKeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the nkey file %s: %w", cfg.NKeyFile, err)
		}
		opts = append(opts, o)
	}
	if cfg.TLS != (TLS{}) {
		opts = append(opts, nats.Secure(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	if cfg.TLS.CA != "" {
		opts = append(opts, nats.RootCAs(cfg.TLS.CA))
	}
	if cfg.TLS.Cert != "" {
		opts = append(opts, nats.ClientCert(cfg.TLS.Cert, cfg.TLS.Key))
	}
	nc, err := nats.Connect(strings.Join(cfg.URLs, ","), opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w", redacted(cfg.URLs), connectHint(err))
	}
	return nc, nil
}

// connectHint adds what to do about the errors that people meet.
func connectHint(err error) error {
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return fmt.Errorf("%w; check the credentials file or the user in the URL", err)
	case errors.Is(err, nats.ErrNoServers):
		return fmt.Errorf("%w; is it running, and is the port right?", err)
	}
	return err
}

// redacted lists URLs without their passwords.
func redacted(urls []string) string {
	out := make([]string, len(urls))
	for i, s := range urls {
		u, err := url.Parse(s)
		if err != nil {
			out[i] = "(unreadable URL)"
			continue
		}
		if u.User != nil {
			// A token stands where a user name does, so neither is shown.
			u.User = url.User("xxxxx")
		}
		out[i] = u.String()
	}
	return strings.Join(out, ", ")
}
