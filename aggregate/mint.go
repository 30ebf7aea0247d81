package aggregate

import (
	"crypto/sha1" //nolint:gosec // of UUIDs
	"strconv"

	"github.com/google/uuid"
)

// idSpace is the name space of all ids that follow from a command.
var idSpace = uuid.MustParse("6f3b4f0e-6f0b-5d8e-9c55-2f7a0c1d9b11")

// mint derives an id from the command it belongs to, so that deciding the same
// command again gives the same ids: a UUID (version 5) of birth, command id,
// purpose and index.
func (env Env) mint(purpose string, index int) string {
	var room [256]byte
	b := append(room[:0], idSpace[:]...)
	b = append(b, env.Birth...)
	b = append(b, 0)
	b = append(b, env.Command...)
	b = append(b, 0)
	b = append(b, purpose...)
	b = append(b, 0)
	b = strconv.AppendInt(b, int64(index), 10)
	sum := sha1.Sum(b) //nolint:gosec // what version 5 is defined by
	id := uuid.UUID(sum[:16])
	id[6] = id[6]&0x0f | 5<<4 // version
	id[8] = id[8]&0x3f | 0x80 // variant
	return id.String()
}

// factCommand stands for the command in what a fact of the engine after seq
// mints. It is no command id: no client can send one that gives the same ids.
func factCommand(seq uint64) string { return "\x01fact:" + strconv.FormatUint(seq, 10) }

func isUUID(s string) bool { return uuid.Validate(s) == nil && len(s) == 36 }
