package bus

import (
	"reflect"

	"github.com/nats-io/nats.go/micro"
)

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
