package pull

// Protection is the rule that protects a branch: the first of the repository's
// rules that matches it, which alone counts.
type Protection struct {
	// Rule is the name of the rule: a branch, or a pattern of branches.
	Rule string `json:"rule"`
	// Priority orders rules: the lowest number goes first.
	Priority int64 `json:"priority"`

	// Push says who may push to the branch without a pull request.
	Push Access `json:"push"`
	// ForcePush says who of those may also replace commits.
	ForcePush Access `json:"forcePush"`
	// Merge says who may merge pull requests. It is always allowed to somebody.
	Merge Access `json:"merge"`

	// StatusCheck says that Contexts count.
	StatusCheck bool `json:"statusCheck,omitempty"`
	// Contexts are the patterns of the statuses that must be successful. Each
	// needs one status at least, and every status that one of them matches must
	// be a success. Without patterns every status must be.
	Contexts []string `json:"contexts,omitempty"`

	// Approvals is the number of approving reviews that are needed.
	Approvals int64 `json:"approvals,omitempty"`
	// Approvers says whose reviews count towards it; not limited means of
	// everybody who may write.
	Approvers Access `json:"approvers"`
	// DismissStale says that a push dismisses approvals, a moment after it;
	// IgnoreStale that those before a push do not count.
	DismissStale bool `json:"dismissStale,omitempty"`
	IgnoreStale  bool `json:"ignoreStale,omitempty"`
	// BlockOnRejected, BlockOnRequested and BlockOnOutdated keep from merging
	// while changes are requested, an official review is asked for, or the head
	// lacks commits of the base.
	BlockOnRejected  bool `json:"blockOnRejected,omitempty"`
	BlockOnRequested bool `json:"blockOnRequested,omitempty"`
	BlockOnOutdated  bool `json:"blockOnOutdated,omitempty"`
	// Signed says that commits must be signed.
	Signed bool `json:"signed,omitempty"`

	// ProtectedFiles and UnprotectedFiles are patterns, separated by semicolons.
	// Nobody merges a change of protected files. A push of nothing but
	// unprotected files is open to everybody who may write, whatever Push says.
	ProtectedFiles   string `json:"protectedFiles,omitempty"`
	UnprotectedFiles string `json:"unprotectedFiles,omitempty"`

	// BindsAdmins says that an administrator cannot merge against statuses,
	// approvals and the like. Who may push and who may merge binds
	// administrators in any case.
	BindsAdmins bool `json:"bindsAdmins,omitempty"`
}

// Access is who may do something.
type Access struct {
	// Allowed is false where nobody may.
	Allowed bool `json:"allowed,omitempty"`
	// Limited says that only those in the lists may; else everybody who may
	// write.
	Limited bool     `json:"limited,omitempty"`
	Users   []string `json:"users,omitempty"`
	Teams   []string `json:"teams,omitempty"`
	// DeployKeys says that keys which may write count as being in the lists.
	DeployKeys bool `json:"deployKeys,omitempty"`
}

// ProtectionChange is what is to be set in a protection; what is nil stays as
// it is, or as the forge has it in a new rule.
type ProtectionChange struct {
	Push      *Access `json:"push,omitempty"`
	ForcePush *Access `json:"forcePush,omitempty"`
	Merge     *Access `json:"merge,omitempty"`
	// Contexts are patterns, see [QuotePattern]. Setting them switches the check
	// on, an empty list too.
	Contexts         *[]string `json:"contexts,omitempty"`
	Approvals        *int64    `json:"approvals,omitempty"`
	DismissStale     *bool     `json:"dismissStale,omitempty"`
	BlockOnRejected  *bool     `json:"blockOnRejected,omitempty"`
	BlockOnOutdated  *bool     `json:"blockOnOutdated,omitempty"`
	UnprotectedFiles *string   `json:"unprotectedFiles,omitempty"`
	BindsAdmins      *bool     `json:"bindsAdmins,omitempty"`
}
