//go:build !goolm

package matrix

import (
	"context"
	"log/slog"

	"maunium.net/go/mautrix"
)

// canEncrypt says whether this build can work in encrypted rooms.
const canEncrypt = false

func openCipher(context.Context, Encryption, *mautrix.Client, *mautrix.MemoryStateStore, *slog.Logger) (cipher, error) {
	return nil, errCannotEncrypt
}
