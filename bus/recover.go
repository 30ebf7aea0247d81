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
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/minio/highwayhash"
	"github.com/nats-io/nats-server/v2/server"
)

// ErrStreamDamaged: the description of a stream on disk is not what the server
// wrote. The server would pass over the stream, and a new one of its name would
// be built on what is left of it.
var ErrStreamDamaged = errors.New("stream is damaged")

// setAside is the folder, beside an account's streams, of what is none any more.
const setAside = "set-aside"

// The server writes the description of a stream and then its checksum, and a
// kill can come between the two. It passes over such a stream at its next start.
// If the stream is then made again, the description is there already, the
// checksum is still not written, and the start after that passes over the stream
// again, with all that was acknowledged meanwhile. So before the server starts
// the checksum that is missing is written.
//
// A power cut before the first sync of a stream can leave its files empty.
// Nobody was answered then; messages without a description are set aside, so that
// no new stream is built on them.

// finishStreams does so for every stream below storeDir. It returns
// ErrStreamDamaged for a description that neither a kill nor a power cut
// explains, and changes nothing of that stream.
func finishStreams(storeDir string, log *slog.Logger) error {
	folders, err := filepath.Glob(filepath.Join(escapeGlob(storeDir), "*", "streams", "*"))
	if err != nil {
		return fmt.Errorf("look for streams: %w", err)
	}
	for _, folder := range folders {
		if strings.HasPrefix(filepath.Base(folder), ".") {
			continue // half removed; the server removes the rest
		}
		if err := finishStream(folder, log.With("stream", filepath.Base(folder))); err != nil {
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
	stream, meta, sum := filepath.Base(folder), filepath.Join(folder, server.JetStreamMetaFile), filepath.Join(folder, server.JetStreamMetaFileSum)
	described, err := readOrEmpty(meta)
	if err != nil {
		return err
	}
	found, err := readOrEmpty(sum)
	if err != nil {
		return err
	}
	want := streamChecksum(stream, described)
	switch {
	case len(described) == 0:
		return notYetMade(folder, log)
	case string(found) == want:
		return nil
	case !describes(described, stream) || len(found) > 0 && !newer(meta, sum):
		return fmt.Errorf("%w: %s and its checksum do not fit", ErrStreamDamaged, meta)
	}
	log.Info("the writing of a stream's description was cut off; its checksum is added")
	return writeWhole(sum, []byte(want))
}

// readOrEmpty reads a file; one that is not there is empty.
func readOrEmpty(name string) ([]byte, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("description of a stream: %w", err)
	}
	return b, nil
}

// notYetMade looks after a folder without a description: one that was just made
// is left to the server, one with messages is set aside.
func notYetMade(folder string, log *slog.Logger) error {
	blocks, err := filepath.Glob(filepath.Join(escapeGlob(folder), "msgs", "*.blk"))
	if err != nil {
		return fmt.Errorf("look for messages: %w", err)
	}
	if !slices.ContainsFunc(blocks, func(b string) bool { i, err := os.Stat(b); return err == nil && i.Size() > 0 }) {
		return nil
	}
	to := filepath.Join(filepath.Dir(filepath.Dir(folder)), setAside, filepath.Base(folder)+"-"+time.Now().UTC().Format("20060102T150405.000000000"))
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return fmt.Errorf("set %s aside: %w", folder, err)
	}
	if err := os.Rename(folder, to); err != nil {
		return fmt.Errorf("set %s aside: %w", folder, err)
	}
	log.Error("a stream has messages and no description, as after a power cut before its first sync, or damage: it is set aside, and what it held is not there any more", "folder", to)
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
	if err := errors.Join(os.Rename(tmp, name), syncDir(filepath.Dir(name))); err != nil {
		return fmt.Errorf("finish a stream: %w", err)
	}
	return nil
}

// syncDir makes the names of a folder durable, where the system can.
func syncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
