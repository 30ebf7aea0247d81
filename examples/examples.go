// Package examples holds the sample recording that an engine without a
// configuration plays.
package examples

import _ "embed"

// ThreeDrafts is a recorded session that improves a text in three drafts.
//
//go:embed three_drafts.jsonl
var ThreeDrafts []byte
