package recorded

import "culm/tool"

// Holds says whether the recording has the call, with a result or without.
func (t *Tools) Holds(c tool.Call) bool { return t.find(c) != nil }
