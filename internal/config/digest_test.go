package config_test

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"culm/events"
	"culm/internal/config"
)

func TestDigest_DependsOnMeaningNotOnSpelling(t *testing.T) {
	t.Parallel()
	want := mustParse(t, "providers:\n  - id: a\n    type: openai\n  - id: b\n    type: gemini\n    enabled: false\n").Digest()
	if raw, err := hex.DecodeString(want); err != nil || len(raw) != 32 {
		t.Errorf("%q is no hex SHA-256", want)
	}
	for name, text := range map[string]string{
		"order of providers": "providers:\n  - {id: b, type: gemini, enabled: false}\n  - {id: a, type: openai}\n",
		"order of keys":      "providers: [{type: openai, id: a}, {enabled: false, type: gemini, id: 'b'}] # one line\n",
		"defaults spelled":   "providers: [{id: a, type: openai, enabled: true, default: false, models: [], pace: 0s}, {id: b, type: gemini, enabled: false}]\npermissions: {mode: default, risk_threshold: low, checks_off: false, session_lifetime: 30m, question_lifetime: 0s, always_ask: []}\n",
		"settings":           "lease: 40s\nhttp: off\nproviders: [{id: a, type: openai}, {id: b, type: gemini, enabled: false}]\n",
	} {
		if got := mustParse(t, text).Digest(); got != want {
			t.Errorf("%s changes the digest", name)
		}
	}
}

// TestDigest_CoversEveryField changes each field of the rules in turn, whatever
// fields there are.
func TestDigest_CoversEveryField(t *testing.T) {
	t.Parallel()
	f, err := config.Load("../../examples/engine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{f.Digest(): "nothing"}
	changed := 0
	eachLeaf(reflect.ValueOf(&f.Rules).Elem(), "rules", func(path string, v reflect.Value) {
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		change(t, path, v)
		d := f.Digest()
		if before, ok := seen[d]; ok {
			t.Errorf("a change of %s gives the digest of a change of %s", path, before)
		}
		seen[d] = path
		v.Set(old)
		changed++
	})
	if changed < 40 {
		t.Errorf("%d fields changed: the example holds more", changed)
	}
}

func eachLeaf(v reflect.Value, path string, visit func(string, reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			eachLeaf(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case reflect.Pointer:
		// The roles of the example share nothing after this.
		if m, ok := reflect.TypeAssert[*events.Model](v); ok && m != nil {
			own := *m
			v.Set(reflect.ValueOf(&own))
			eachLeaf(v.Elem(), path, visit)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			visit(path, v)
			return
		}
		for i := range v.Len() {
			eachLeaf(v.Index(i), fmt.Sprintf("%s[%d]", path, i), visit)
		}
		visit(path, v)
	default:
		visit(path, v)
	}
}

// change gives v another value that it could have.
func change(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(v.Int() + int64(time.Second))
	case v.Kind() == reflect.String && strings.HasSuffix(path, "Matcher.ID"):
		v.SetString("an id")
	case v.Kind() == reflect.String:
		v.SetString(v.String() + "x")
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes([]byte(`{"enabled":true}`))
	case v.Kind() == reflect.Slice:
		v.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
	default:
		t.Fatalf("%s has kind %s: the test cannot change it", path, v.Kind())
	}
}
