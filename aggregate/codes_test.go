package aggregate

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"culm/events"
)

var (
	codePattern = regexp.MustCompile("`([a-z_]+)`( †)?")
	wordPattern = regexp.MustCompile("`([a-z_]+)`")
)

// contractTable is the first column of the first table below a heading of the
// contract, by code: the row's last cell, and whether the code is marked †.
type contractRow struct {
	last    string
	appends bool
}

func contractTable(t *testing.T, heading string) map[string]contractRow {
	t.Helper()
	text, err := os.ReadFile("../docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("no %s", heading)
	}
	rows := map[string]contractRow{}
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "#") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) < 2 || !strings.Contains(cells[0], "`") {
			continue
		}
		for _, m := range codePattern.FindAllStringSubmatch(cells[0], -1) {
			rows[m[1]] = contractRow{cells[len(cells)-1], m[2] != ""}
		}
	}
	return rows
}

// The contract lists every code once, and a code is reserved if and only if
// nothing here ever sends it.
func TestCodes_AreListedAndSentOrReserved(t *testing.T) {
	t.Parallel()
	listed, reserved := contractTable(t, "## Error codes"), contractTable(t, "### Reserved")
	declared := map[string]string{} // code by constant
	text, err := os.ReadFile("codes.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(Code\w+)\s+= "(\w+)"`).FindAllStringSubmatch(string(text), -1) {
		declared[m[1]] = m[2]
	}
	if len(declared) < 50 {
		t.Fatalf("%d codes read", len(declared))
	}
	sent := sources(t, ".", "policy", "routing", "../bus")
	for constant, code := range declared {
		_, isListed := listed[code]
		_, isReserved := reserved[code]
		isSent := regexp.MustCompile(`\b`+constant+`\b`).MatchString(sent) || strings.Contains(sent, `"`+code+`"`)
		if isListed == isReserved {
			t.Errorf("%s: listed %v, reserved %v", code, isListed, isReserved)
		}
		if isSent == isReserved {
			t.Errorf("%s: sent %v, reserved %v", code, isSent, isReserved)
		}
	}
	codes := slices.Collect(maps.Values(declared))
	for code := range reserved {
		if !slices.Contains(codes, code) {
			t.Errorf("%s is reserved and no code", code)
		}
	}
}

// sources is the text of the program's files in the folders, without codes.go.
func sources(t *testing.T, folders ...string) string {
	t.Helper()
	var b strings.Builder
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", folder, err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") || f == "codes.go" {
				continue
			}
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(text)
		}
	}
	return b.String()
}

// detailStories end in a refusal with the code that they stand under.
var detailStories = map[string][]string{
	CodeSessionExists:         {"session.create"},
	CodeBirthChanged:          {`session.delete {"birth":"01KB9ZQ3V5T8QW2X4Y6Z7A8B9C"}`},
	CodeWrongExpectedSequence: {"expect=7 run.resume"},
	CodeCommandIDReused:       {`id=x message.submit {"content":"a"}`, `id=x message.submit {"content":"b"}`},
	CodeAlreadyClaimed:        {`run.request {"prompt":"p"}`, "claim", "claim"},
	CodeCallsOpen:             {parkedStory, "run.request {\"prompt\":\"q\"}"},
	CodeCallNotOpen:           {openStory, "use a", "use a"},
	CodeGenerationChanged:     {parkedStory, `approval.decide {"tool_call_id":"a","generation":"7d5f2c1e-9b7a-4c59-8d2e-3f4a5b6c7d8e","decision":"allow_once"}`},
	CodeRecoveryUnsupported:   {`run.request {"prompt":"p","loop":{"max_iterations":2,"max_total_rounds":4}}`, "claim", "round.start", "crash", "run.resume"},
	CodeProviderNotHeld:       {`run.request {"prompt":"p"}`, `run.claim {"run_id":"$run","runner":"r1","providers":["other"]}`},
	CodeProviderUnavailable:   {`run.request {"prompt":"p"}`, "config", "claim"},
	CodeReplayTargetMissing:   {parkedStory, "approve a", "claim", "tamper", "replay.start"},
	CodeAuthorizationRefused: {
		openStory, `tool.authorize {"tool_call_id":"a","permission_type":"write_file","resource":"/w/a"}`,
		`approval.decide {"tool_call_id":"a","generation":"$gen(a)","decision":"allow_workspace","expected_policy_revision":0}`,
		`session.configure {"workspace":"/elsewhere"}`, "claim", "replay.start",
	},
	CodePendingQuestionMismatch: {parkedStory, `question.answer {"tool_call_id":"b","answer":"x"}`},
	CodeAlreadyDecided:          {parkedStory, "as=ann approve a", "deny a"},
	CodePolicyConflict:          {parkedStory, `approval.decide {"tool_call_id":"a","generation":"$gen(a)","decision":"allow_workspace","expected_policy_revision":7}`},
	CodeConfirmationRequired:    {parkedStory, `approval.decide {"tool_call_id":"a","generation":"$gen(a)","decision":"allow_global","expected_policy_revision":0}`},
	CodeWorkspaceRequired:       {`session.configure {"workspace":""}`, parkedStory, `approval.decide {"tool_call_id":"a","generation":"$gen(a)","decision":"allow_workspace","expected_policy_revision":0}`},
	CodeUnknownMatcher:          {parkedStory, `approval.decide {"tool_call_id":"a","generation":"$gen(a)","decision":"allow_session","matcher_id":"x"}`},
	CodeOptionNotAllowed:        {openStory, "ask a A B", `question.answer {"answer":"C"}`},
}

const (
	openStory   = "run.request {\"prompt\":\"p\"}\nclaim\nround.start\ncall a Write"
	parkedStory = openStory + "\n" + `tool.park {"tool_call_id":"a","question":"?","request":{"tool_name":"Write","permission_type":"write_file","resource":"/w/a","allowed_decisions":["allow_once","allow_session","allow_workspace","allow_global","deny_once"]}}`
)

// The details of a refusal are those that the contract names, all of them and no
// others, for every code that the contract gives details, and for every code
// that comes with an event; a command sent again is told the same.
func TestDetails_AreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	documented := contractTable(t, "### Details")
	for code, row := range contractTable(t, "## Error codes") {
		if _, ok := documented[code]; row.appends && !ok {
			t.Errorf("%s † has no details in the contract", code)
		}
	}
	for code, row := range documented {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			var want []string
			for _, m := range wordPattern.FindAllStringSubmatch(row.last, -1) {
				want = append(want, m[1])
			}
			slices.Sort(want)
			s := newScript(t)
			s.all(t, `session.create {"model":{"provider":"test","model":"m1"},"workspace":"/w"}`)
			for _, line := range detailStories[code] {
				if line == "tamper" {
					s.tamper(t)
					continue
				}
				s.all(t, strings.Split(line, "\n")...)
			}
			check := func(r Reply) {
				t.Helper()
				if r.OK || r.Error.Code != code || (r.Event != nil || r.Sequence > 0 && s.refusalEvent(r.Sequence)) != row.appends {
					t.Fatalf("%+v, error %+v", r, r.Error)
				}
				var got []string
				for k, v := range r.Error.Details {
					if v == nil || v == "" {
						t.Errorf("%s is empty", k)
					}
					got = append(got, k)
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("details %v, the contract says %v", r.Error.Details, want)
				}
			}
			check(s.reply)
			if row.appends {
				s.play(t, fmt.Sprintf("cmd=line-%d", s.lines))
				if check(s.reply); !s.reply.Duplicate {
					t.Error("not answered as before")
				}
			}
		})
	}
}

// refusalEvent says that the event there tells of a refusal.
func (s *script) refusalEvent(seq uint64) bool {
	all := s.b.records(s.session)
	return len(all) > 0 && all[len(all)-1].Seq == seq && s.marks(all[len(all)-1])
}

// tamper changes the arguments of call a where they are stored, with a chain of
// hashes that fits, and starts an engine that has not seen them before.
func (s *script) tamper(t *testing.T) {
	t.Helper()
	s.b.log.Rewrite(s.session, func(log []events.Record) []events.Record {
		for i := range log {
			if log[i].Type == "round.finished" {
				log[i].Payload = bytes.Replace(log[i].Payload, []byte(`{\"n\":\"a\"}`), []byte(`{\"n\":\"b\"}`), 1)
			}
		}
		return rechained(t, log)
	})
	s.engines = append([]*engine{s.b.engine()}, s.engines...)
}

// rechained gives every event the hash of what stands before it now.
func rechained(t *testing.T, log []events.Record) []events.Record {
	t.Helper()
	for i := range log {
		e, err := events.Decode(log[i].Payload)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			e.Prevhash = events.Hash(log[i-1].Payload)
		}
		if log[i].Payload, err = events.Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	return log
}
