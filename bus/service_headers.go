package bus

import (
	"reflect"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"culm/aggregate"
)

// misspelt refuses a header that is one of ours but for case or space. Names are
// compared exactly; the command would be judged as if it had not come.
func misspelt(h nats.Header) *aggregate.Error {
	for name := range h {
		for _, ours := range []string{HeaderCommandID, HeaderLaterID, HeaderExpected} {
			if name != ours && strings.EqualFold(strings.TrimSpace(name), ours) {
				return refuse(aggregate.CodeInvalidCommand, "the header %.40q is to be spelled %s", name, ours)
			}
		}
	}
	return nil
}

// lostHeaders says that the request came with headers that the client library
// could not read. It then hands the message over without any, and a command
// would be judged without its id and its expected sequence. The library tells so
// at some other time only (an asynchronous error); at the message itself the one
// trace is its size on the wire.
func lostHeaders(req micro.Request) bool {
	if req.Headers() != nil {
		return false
	}
	size, known := wireSize(req)
	return known && size > int64(len(req.Subject())+len(req.Reply())+len(req.Data()))
}

// wireSize is the message's nats.Msg.Size, which micro does not show.
func wireSize(req micro.Request) (size int64, known bool) {
	v := reflect.ValueOf(req)
	for _, field := range []string{"msg", "wsz"} {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return 0, false
		}
		v = v.FieldByName(field)
	}
	if !v.IsValid() || !v.CanInt() {
		return 0, false
	}
	return v.Int(), true
}
