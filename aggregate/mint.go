package aggregate

import (
	"strconv"

	"github.com/google/uuid"
)

// idSpace is the name space of all ids that follow from a command.
var idSpace = uuid.MustParse("6f3b4f0e-6f0b-5d8e-9c55-2f7a0c1d9b11")

// mint derives an id from the command it belongs to, so that deciding the same
// command again gives the same ids: a UUID (version 5) of birth, command id,
// purpose and index.
func (env Env) mint(purpose string, index int) string {
	return uuid.NewSHA1(idSpace, []byte(env.Birth+"\x00"+env.Command+"\x00"+purpose+"\x00"+strconv.Itoa(index))).String()
}

// factCommand stands for the command in what a fact of the engine after seq
// mints. It is no command id: no client can send one that gives the same ids.
func factCommand(seq uint64) string { return "\x01fact:" + strconv.FormatUint(seq, 10) }

func isUUID(s string) bool { return uuid.Validate(s) == nil && len(s) == 36 }
