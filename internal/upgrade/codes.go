package upgrade

import (
	"fmt"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
)

// Code is one kind of finding that a walk can end in.
type Code struct {
	Code     string
	Severity finding.Severity // what it is unless the pods concerned were simulated
	Doc      string           // what was seen, and why it matters
	Cure     string           // what the author can do
	Static   []string         // the checks of a catalog that may have told beforehand
}

// The codes of the family U: what was seen while upgrading.
const (
	codeNotChosen        = "U101"
	codePlanFailed       = "U102"
	codeNotSucceeded     = "U103"
	codeCrashed          = "U104"
	codeNotStable        = "U105"
	codeOldVersionStays  = "U106"
	codeBaseFailed       = "U107"
	codeStoredRefused    = "U108"
	codeObjectsRefused   = "U109"
	codePlanWarning      = "U110"
	codeConversionBlocks = "U111"

	codeRestarted  = "U201"
	codeRollouts   = "U202"
	codeReinstalls = "U203"

	codeUnreadable      = "U301"
	codeFieldLost       = "U302"
	codeRoundTrip       = "U303"
	codeUnconverted     = "U304"
	codeWriteLost       = "U305"
	codeObjectGone      = "U306"
	codeDefaultChanged  = "U307"
	codeManifestRefused = "U308"
	codeServedWrong     = "U309"
	codeVersionGone     = "U310"
	codeSampleRefused   = "U311"
	codeSampleMissing   = "U312"
	codeLostAtOnce      = "U313"
	codeSampleUnknown   = "U314"

	codeReadOutage      = "U401"
	codeWriteOutage     = "U402"
	codeOutageStays     = "U403"
	codeAdmissionOutage = "U404"

	codeOperandReplaced  = "U501"
	codeOperandRolled    = "U502"
	codeStatusStale      = "U503"
	codeConditionWorse   = "U504"
	codeOperandChanged   = "U505"
	codeOperandRestarted = "U506"
	codeOperandOutage    = "U507"
	codeRestless         = "U508"

	codeStoredVersions    = "U601"
	codeLeftBehind        = "U602"
	codeUninstall         = "U603"
	codeSurvives          = "U604"
	codeDefinitionDropped = "U605"
	codeRemains           = "U606"
	codeUnlikeFresh       = "U607"

	codeFaultBroke   = "U701"
	codeFaultIgnored = "U702"

	codeNoWayBack     = "U801"
	codeLostOnWayBack = "U802"
	codeIdleAfterBack = "U803"
	codeWayBack       = "U804"

	codeNotProvable = "U901"
	codeSlow        = "U902"
	codeWalkEnded   = "U903"
)

// Codes lists every code of the family U, in order.
var Codes = []Code{
	{codeNotChosen, finding.Error, "OLM did not choose the upgrade although the catalog offers it, so users stay where they are without a word.",
		"compare the channel entry's replaces, skips and skipRange with the installed version, and see the Subscription's conditions", nil},
	{codePlanFailed, finding.Error, "The InstallPlan failed. OLM does not try again: the Subscription is stuck until someone deletes the plan.",
		"make the manifest that the message names one that OLM and the API server accept on top of the version before", []string{"CRD005"}},
	{codeNotSucceeded, finding.Error, "The new version's CSV did not reach Succeeded in time.",
		"see the condition and the log lines; what the CSV waits for must come up without help", []string{"EDG001"}},
	{codeCrashed, finding.Error, "The new version's operator does not keep running: its container ends again and again.",
		"run the manager with the permissions, arguments and certificates of the bundle and mend what its last lines say", nil},
	{codeNotStable, finding.Error, "The new version's CSV reached Succeeded and left it again.",
		"keep the operator's deployments available and what OLM made for them (certificates, webhooks, RBAC) untouched", nil},
	{codeOldVersionStays, finding.Error, "The old version's CSV was not removed although the new one succeeded.",
		"look for finalizers on it and for a replaces that does not name it", nil},
	{codeBaseFailed, finding.Error, "The version to upgrade from could not be installed, so the upgrade from it could not be walked.",
		"see why OLM cannot install it; users who have it got it in another way", nil},
	{codeStoredRefused, finding.Error, "The new CRD drops a version that status.storedVersions still names, which OLM refuses: the upgrade ends there.",
		"keep the version in the CRD (served: false is allowed) until a release has migrated the stored objects and its storedVersions", []string{"CRD001", "CRD002"}},
	{codeObjectsRefused, finding.Error, "Objects that users have do not validate under the new CRD's schema, so OLM refuses to apply it.",
		"do not tighten the schema of a released version; add a new version with conversion", []string{"CRD006", "CRD008"}},
	{codePlanWarning, finding.Info, "OLM or the API server warned while installing.", "", nil},
	{codeConversionBlocks, finding.Error, "The InstallPlan failed because OLM lists the existing objects before it writes a CRD, and conversion did not work: when OLM repeats " +
		"a plan's steps, it meets the CRD it wrote before, whose webhook is not up yet.",
		"let the new version come up within the minute that OLM gives a plan; see what keeps its CSV from that", nil},

	{codeRestarted, finding.Warning, "A container of the operator ended and was started again during the upgrade.",
		"let the manager wait for what it needs (certificates, API versions) instead of ending", nil},
	{codeRollouts, finding.Warning, "A deployment of the operator was rolled out more than once in one upgrade.",
		"keep what OLM adds to the pod template stable: the webhooks' deployment and its certificates", nil},
	{codeReinstalls, finding.Info, "OLM installed the old version again on the way, before it replaced it.", "", nil},

	{codeUnreadable, finding.Error, "After the upgrade an object cannot be read in a version that the API server serves.",
		"make the conversion webhook convert every stored object to every served version", nil},
	{codeFieldLost, finding.Error, "What the author of an object wrote is not there any more after the upgrade.",
		"convert without loss: what a version cannot say has to survive, for example in an annotation", []string{"CRD004"}},
	{codeRoundTrip, finding.Error, "Reading an object through a version and writing it back unchanged loses or changes fields.",
		"convert without loss: what a version cannot say has to survive, for example in an annotation", nil},
	{codeUnconverted, finding.Error, "An object is stored with fields that its stored version does not have: it was stored without conversion.",
		"put spec.conversion with the webhook into the bundle's CRD, so that strategy None is never in force while several versions are served", []string{"WHK007"}},
	{codeWriteLost, finding.Error, "A write that the API server acknowledged during the upgrade is not there afterwards.",
		"see at which moment it was lost, and what OLM changed then", nil},
	{codeObjectGone, finding.Error, "An object disappeared, or was replaced by another of its name, during the upgrade.",
		"never delete and create again what users own; do not drop the CRD", nil},
	{codeDefaultChanged, finding.Warning, "A field that the author left to its default has another value after the upgrade.",
		"keep the defaults of a released version", []string{"CRD010"}},
	{codeManifestRefused, finding.Error, "A manifest that the old version accepted is refused by the new one, or loses fields.",
		"keep accepting what a served version accepted", []string{"CRD006", "CRD007"}},
	{codeServedWrong, finding.Error, "During the upgrade objects were served with other content than was written: whoever writes back what was read then destroys it.",
		"put spec.conversion with the webhook into the bundle's CRD, so that strategy None is never in force while several versions are served", []string{"WHK007"}},
	{codeVersionGone, finding.Warning, "A version that was served is not served any more: clients that use it break with this upgrade.",
		"announce it with deprecated: true at least a release before", []string{"CRD003", "CRD012"}},
	{codeSampleRefused, finding.Warning, "A sample is refused by the API server, so nothing is proved of it.",
		"make the sample valid: users copy it from the console", []string{"CSV015"}},
	{codeSampleMissing, finding.Info, "A kind has no sample, so nothing is proved of its objects.",
		"add one to alm-examples, or give it with --sample", []string{"CSV016"}},
	{codeLostAtOnce, finding.Error, "A field of an object is lost at the moment it is written.",
		"convert without loss: what a version cannot say has to survive, for example in an annotation", nil},
	{codeSampleUnknown, finding.Warning, "A sample has fields that the schema does not have. The API server drops them silently.",
		"correct the sample, or add the fields to the schema", []string{"CSV015"}},

	{codeReadOutage, finding.Warning, "For a while objects could not be read through a served version.",
		"shorten the window: see its cause", []string{"WHK008"}},
	{codeWriteOutage, finding.Warning, "For a while objects could not be written through a served version.",
		"shorten the window: see its cause", []string{"WHK008"}},
	{codeOutageStays, finding.Error, "Objects still cannot be read or written through a served version after the upgrade.",
		"make the webhooks of the new version answer for every served version", []string{"WHK005", "WHK006"}},
	{codeAdmissionOutage, finding.Warning, "For a while writes were refused because an admission webhook of the operator did not answer. Conversion has nothing to do with it.",
		"let the manager serve on for some seconds after it was asked to end, and be ready only once its webhook server listens; run two replicas", []string{"WHK008"}},

	{codeOperandReplaced, finding.Warning, "What the operator made for an object was deleted, or replaced by another of its name.",
		"change operands in place; names and selectors stay what they are", nil},
	{codeOperandRolled, finding.Info, "The upgrade replaced pods that the operator had made for objects.", "", nil},
	{codeStatusStale, finding.Warning, "The new version does not report on an object: status.observedGeneration stays behind.",
		"reconcile every object at start and write status.observedGeneration", nil},
	{codeConditionWorse, finding.Warning, "A condition of an object that was True before the upgrade is not any more.",
		"see the condition's message", nil},
	{codeOperandChanged, finding.Warning, "The new version changed what the old one had made for an object that nobody changed. That may be its purpose; it may " +
		"also be that the object means something else in the version that the new release reads.",
		"look whether each field was meant to change; if not, see what conversion and defaults make of the object", nil},
	{codeOperandRestarted, finding.Warning, "Containers that run for an object were restarted during the upgrade.",
		"see why they ended; an upgrade of the operator should leave them alone", nil},
	{codeOperandOutage, finding.Warning, "A Service that the operator made for an object had no ready endpoint for a while during the upgrade: its clients were not served.",
		"do not roll operands out when the operator is upgraded, or do so with a surge and readiness probes", nil},
	{codeRestless, finding.Warning, "The operator writes whenever it looks at an object, although there is nothing to do. Each write makes it look again, and others too: " +
		"that is load without end.",
		"compare before writing, and keep times and counters out of what is compared", nil},

	{codeStoredVersions, finding.Info, "status.storedVersions names versions besides the storage version: no later release may drop them before the stored objects are migrated.",
		"migrate: write every object once, then take the old versions out of status.storedVersions", nil},
	{codeLeftBehind, finding.Warning, "Something that was made for the old version is still there although nothing owns it.",
		"let the operator or the bundle remove it", nil},
	{codeUninstall, finding.Warning, "Uninstalling did not end by itself.",
		"let the operator remove its finalizers as long as it runs", nil},
	{codeSurvives, finding.Info, "OLM leaves something on the cluster when the operator is uninstalled, its definitions and objects apart.",
		"nothing to mend in the bundle; tell who uninstalls to delete it", nil},
	{codeDefinitionDropped, finding.Warning, "A definition that the old version owned is not the new version's any more and is still there: nobody acts on its objects.",
		"keep owning the definition until its users have moved on, and tell them to delete it", []string{"CRD009"}},

	{codeRemains, finding.Error, "Something of the package was deleted and does not go: whoever uninstalls the operator waits for ever, and nobody can install it again.",
		"see the finalizers of what the message names, and let something take them away that still runs when the operator is uninstalled", nil},
	{codeUnlikeFresh, finding.Warning, "What OLM made for a release by upgrades is not what it makes for the same release where nothing was before, so users of one version have two different operators.",
		"let each release bring or remove all that differs; what OLM does not take back by itself, the operator has to", nil},

	{codeFaultBroke, finding.Error, "Under a fault that was made on purpose the upgrade did worse than it should: it did not come to its end, or something was lost.",
		"let the operator start again from whatever state it finds, and wait for what it needs instead of giving up", nil},
	{codeFaultIgnored, finding.Error, "A fault that should have held the upgrade up did not: OLM went on before it was allowed to.",
		"see what the installed version's OperatorCondition and the Subscription said at that time", nil},

	{codeNoWayBack, finding.Error, "After an upgrade that failed, the version before could not be installed again with the objects in place: there is no way back " +
		"but to delete the definitions with all objects and to restore a backup.",
		"add a version in one release and store it in the next, so that the release before always knows what is stored; keep served what it serves", []string{"CRD001", "CRD002"}},
	{codeLostOnWayBack, finding.Error, "After an upgrade that failed, and the way back to the version before, an object does not say what it said before.",
		"convert without loss in both directions, and migrate nothing that the version before cannot read", nil},
	{codeIdleAfterBack, finding.Warning, "After the way back the old version runs again, and does not act on an object as it did before.",
		"let the new version change nothing that the old one needs: finalizers, locks, labels and names of what it made", nil},
	{codeWayBack, finding.Info, "After an upgrade that failed, the version before could be installed again, and objects say what they said before.", "", nil},

	{codeNotProvable, finding.Info, "This cannot be proved here, because pods were simulated whose images could not be had.",
		"give the program with --image REF=BINARY", nil},
	{codeSlow, finding.Info, "The cluster as a whole answered slowly, so that outages are measured less exactly than to the tenth of a second.",
		"give the walk more of the machine", nil},
	{codeWalkEnded, finding.Error, "The walk itself could not go on, so the hops after it were not walked: the cluster or the machine failed, not the package.",
		"see the message; what was found until then stands", nil},
}

// find returns the finding of code about object, with the code's severity and cure.
func find(code, object, format string, args ...any) finding.Finding {
	for _, c := range Codes {
		if c.Code == code {
			f := finding.Finding{
				Code: code, Severity: c.Severity, Subject: finding.Subject{Object: object},
				Message: fmt.Sprintf(format, args...), Cure: c.Cure,
			}
			if c.Severity == finding.Error && len(c.Static) > 0 {
				f.Cure += "; 'olmkit catalog validate' may tell it before anything is installed: " + strings.Join(c.Static, ", ")
			}
			return f
		}
	}
	panic("upgrade: no such code: " + code)
}
