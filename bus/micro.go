package bus

import (
	"log/slog"
	"regexp"
	"strings"

	"github.com/nats-io/nats.go/micro"
)

// semantic matches the versions that micro takes; it refuses a service of any
// other. The pattern is that of semver.org.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
	`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)

// microConfig is what the micro services of this package have in common.
func microConfig(name, description string, subjects Subjects, build string, log *slog.Logger) micro.Config {
	version := strings.TrimPrefix(build, "v")
	if !semantic.MatchString(version) {
		version = "0.0.0" // a build between releases: metadata names it
	}
	return micro.Config{
		Name: name, Version: version, Description: description, QueueGroup: name,
		Metadata: map[string]string{"prefix": subjects.Prefix(), "build": build},
		ErrorHandler: func(_ micro.Service, e *micro.NATSError) {
			log.Error("micro service", "service", name, "subject", e.Subject, "err", e.Description)
		},
	}
}
