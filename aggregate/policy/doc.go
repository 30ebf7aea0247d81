// Package policy decides whether a tool call may run: it allows, denies, or
// says that a person has to be asked, and which answers that person may give
// (docs/permissions.md).
//
// Everything here is a pure function of its arguments. The time, the rules and
// what people decided before are passed in; nothing is read from the machine,
// and the same Input always gives the same Verdict.
//
// How it is used:
//
//  1. New checks the installation's Config and makes a Policy of it.
//  2. Policy.Evolve folds the events of the _settings session over it; before
//     such an event is stored, Policy.CheckRule and CheckMode judge it.
//  3. For each call, Evaluate goes through the evaluation order and stops at
//     the first step that applies.
//  4. An asking verdict is parked with its AllowedDecisions and Matchers. When
//     a person decides, CheckDecision judges the answer, and RuleFor and
//     GrantFor spell what is to be remembered.
//  5. Before an approved call is replayed, Restore turns the approvals given
//     for it into the OneShots and Grants that Evaluate is given again.
//
// Two readings of a matcher exist, and the difference is the point: what
// allows (Match) is read narrowly, so that doubt means no; what restricts
// (Touches) is read widely, so that doubt means yes.
//
// A runner states what a call touches. The policy judges that statement; it is
// no sandbox and does not see what a process does once it runs.
package policy
