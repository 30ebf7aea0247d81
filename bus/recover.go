package bus

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/minio/highwayhash"
	"github.com/nats-io/nats-server/v2/server"
)

// ErrStreamDamaged: the description of a stream on disk is not what the server
// wrote. The server would pass over the stream, and a new one of its name would
// be built on what is left of it.
var ErrStreamDamaged = errors.New("stream is damaged")

// The server writes the description of a stream and then its checksum, and a
// kill can come between the two. It passes over such a stream at its next start.
// If the stream is then made again, the description is there already, the
// checksum is still not written, and the start after that passes over the stream
// again, with all that was acknowledged meanwhile. So before the server starts
// the checksum that a kill left out is written.

// finishStreams does so for every stream below storeDir. It changes nothing
// else, and returns ErrStreamDamaged for a description that no kill explains.
func finishStreams(storeDir string, log *slog.Logger) error {
	folders, err := filepath.Glob(filepath.Join(escapeGlob(storeDir), "*", "streams", "*"))
	if err != nil {
		return fmt.Errorf("look for streams: %w", err)
	}
	for _, folder := range folders {
		if strings.HasPrefix(filepath.Base(folder), ".") {
			continue // half removed; the server removes the rest
		}
		if err := finishStream(folder, log); err != nil {
			return fmt.Errorf("%w; put the folder back from a copy, or move it away to go on without that stream", err)
		}
	}
	return nil
}

// escapeGlob makes a pattern that matches the path alone.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func finishStream(folder string, log *slog.Logger) error {
	meta, sum := filepath.Join(folder, server.JetStreamMetaFile), filepath.Join(folder, server.JetStreamMetaFileSum)
	described, err := os.ReadFile(meta)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(described) == 0 {
		return notYetMade(folder)
	}
	if err != nil {
		return fmt.Errorf("stream in %s: %w", folder, err)
	}
	want := streamChecksum(filepath.Base(folder), described)
	found, err := os.ReadFile(sum)
	switch {
	case err == nil && string(found) == want:
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("stream in %s: %w", folder, err)
	}
	if !describes(described, filepath.Base(folder)) || err == nil && !newer(meta, sum) {
		return fmt.Errorf("%w: %s and its checksum do not fit", ErrStreamDamaged, meta)
	}
	log.Info("a kill cut the writing of a stream's description off; its checksum is added", "stream", filepath.Base(folder))
	return writeWhole(sum, []byte(want))
}

// notYetMade is nil for a folder that was made just before a kill. With messages
// in it, it has lost its description.
func notYetMade(folder string) error {
	blocks, err := filepath.Glob(filepath.Join(escapeGlob(folder), "msgs", "*.blk"))
	if err != nil {
		return fmt.Errorf("look for messages: %w", err)
	}
	for _, b := range blocks {
		if i, err := os.Stat(b); err == nil && i.Size() > 0 {
			return fmt.Errorf("%w: %s has messages and no description", ErrStreamDamaged, folder)
		}
	}
	return nil
}

// streamChecksum is the server's: a keyed hash in hexadecimal, the key derived
// from the stream's name.
func streamChecksum(stream string, described []byte) string {
	key := sha256.Sum256([]byte(stream))
	sum := highwayhash.Sum64(described, key[:])
	return hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, sum))
}

// describes says that b is a whole description of the stream.
func describes(b []byte, stream string) bool {
	var d struct {
		Name string `json:"name"`
	}
	return json.Unmarshal(b, &d) == nil && d.Name == stream
}

// newer says that a was written after b: a kill between the two leaves that,
// decay of the disk does not.
func newer(a, b string) bool {
	x, e1 := os.Stat(a)
	y, e2 := os.Stat(b)
	return e1 == nil && e2 == nil && x.ModTime().After(y.ModTime())
}

// writeWhole writes a file so that it is there whole and on disk, or not at all.
func writeWhole(name string, b []byte) error {
	tmp := name + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("finish a stream: %w", err)
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("finish a stream: %w", err)
	}
	if err := os.Rename(tmp, name); err != nil {
		return fmt.Errorf("finish a stream: %w", err)
	}
	return nil
}
