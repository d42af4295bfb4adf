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
	Fix      string           // what the author can do
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
	codeUnmet            = "U112"

	codeRestarted  = "U201"
	codeRollouts   = "U202"
	codeReinstalls = "U203"
	codeNobodyLed  = "U204"
	codeLogErrors  = "U205"
	codePanics     = "U206"

	codeForbidden  = "U211"
	codeNoResource = "U212"
	codeConflicts  = "U213"
	codeInvalid    = "U214"
	codeDenied     = "U215"

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
	codeAssertion       = "U315"

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
	codeHotLoop          = "U508"
	codeNotReconciled    = "U509"
	codeOperandWorse     = "U511"
	codeOperandImage     = "U513"

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
	codeNotRun      = "U904"
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
	{codeUnmet, finding.Error, "OLM waits for something that cannot come true: a newer Kubernetes, or an API that neither the bundle nor the catalog nor the cluster provides.",
		"ship the API with the bundle or in the same catalog, or no longer require it", []string{"EDG007", "CSV009", "DEP002"}},

	{codeRestarted, finding.Warning, "A container of the operator ended and was started again during the upgrade.",
		"let the manager wait for what it needs (certificates, API versions) instead of ending", nil},
	{codeRollouts, finding.Warning, "A deployment of the operator was rolled out more than once in one upgrade.",
		"keep what OLM adds to the pod template stable: the webhooks' deployment and its certificates", nil},
	{codeReinstalls, finding.Info, "OLM installed the old version again on the way, before it replaced it.", "", nil},
	{codeNobodyLed, finding.Info, "For some seconds no pod of the operator led, so nothing was reconciled: the new leader waited until the old one's lock ran out.",
		"release the lock when the manager ends: set LeaderElectionReleaseOnCancel in controller-runtime's options, and end the program as soon as the manager has", nil},
	{codeLogErrors, finding.Warning, "The new version's manager logs an error again and again, and goes on doing so after the upgrade. Where the release before logged it " +
		"as well it is a note.",
		"see what the log says of its cause: whatever the manager tries to do there, it does not get done", nil},
	{codePanics, finding.Error, "The new version's manager panicked. Where its controllers recover, the object that it was at is not reconciled; else the process ends. " +
		"Where the release before panicked in the same way, or is what users upgrade from, it is a warning.",
		"run the function that the log names on the object that it names; objects that older releases made lack the fields that are new", nil},

	{codeForbidden, finding.Error, "The API server does not allow the operator's ServiceAccount what the operator needs (401 or 403). Where the release before was " +
		"refused the same it is a warning.",
		"give the ServiceAccount what the API server's message says that it lacks, or ask for nothing that it may not have", []string{"EDG008"}},
	{codeNoResource, finding.Error, "The operator asks again and again for a resource that the API server does not have (404): its CustomResourceDefinition is " +
		"missing, or does not serve the version. Where the release before did the same it is a warning.",
		"own or require the definition in the ClusterServiceVersion, or use the resource only where discovery lists it", nil},
	{codeConflicts, finding.Error, "Every update of an object by the operator meets a conflict (409): it never writes what it wants. Where the release before met " +
		"the same it is a warning.",
		"read the object again before each update, or use server-side apply with a field manager of the operator's own and force", nil},
	{codeInvalid, finding.Error, "The API server finds invalid what the operator writes (422), such as a change of an immutable field, so the object stays what it is. " +
		"Where the release before was refused the same it is a warning.",
		"keep immutable fields what the release before made them; where one has to change, make an object of another name and move over, or delete the object " +
			"and create it again in a release that says so", nil},
	{codeDenied, finding.Error, "An admission webhook or policy denies what the operator writes. Where the release before was denied the same it is a warning.",
		"write what the webhook accepts, also of objects that were made before it was there; a webhook of the operator's own must let the operator's writes of " +
			"status and finalizers pass", nil},

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
	{codeDefaultChanged, finding.Warning, "A field that the author did not write in this version has another value after the upgrade: its default changed, or what conversion makes of the object. The cause says it where it is conversion, which then is to be mended.",
		"keep the defaults of a released version", []string{"CRD010"}},
	{codeManifestRefused, finding.Error, "A manifest that the old version accepted is refused by the new one, or loses fields.",
		"keep accepting what a served version accepted", []string{"CRD006", "CRD007", "CRD019"}},
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
	{codeAssertion, finding.Error, "An object is not what an assertion given with --assert says. The message names the fields, what is asserted and what was found.",
		"see what the release does to these fields; if it is right, correct the assertion", nil},

	{codeReadOutage, finding.Warning, "For a while objects could not be read through a served version.",
		"shorten the window: see its cause", []string{"WHK008"}},
	{codeWriteOutage, finding.Warning, "For a while objects could not be written through a served version.",
		"shorten the window: see its cause", []string{"WHK008"}},
	{codeOutageStays, finding.Error, "Objects still cannot be read or written through a served version after the upgrade.",
		"make the webhooks of the new version answer for every served version", []string{"WHK005", "WHK006"}},
	{codeAdmissionOutage, finding.Warning, "For a while writes were refused because the API server could not call an admission webhook of the operator, or did not trust it. " +
		"Objects could be read meanwhile: admission webhooks are not asked about that.",
		"let the manager serve on for some seconds after it was asked to end, and be ready only once its webhook server listens; run two replicas", []string{"WHK008"}},

	{codeOperandReplaced, finding.Warning, "What the operator made for an object was deleted, or replaced by another of its name.",
		"change operands in place; names and selectors stay what they are", nil},
	{codeOperandRolled, finding.Info, "The upgrade replaced pods that the operator had made for objects.", "", nil},
	{codeStatusStale, finding.Warning, "The new version does not report on an object: status.observedGeneration stays behind.",
		"reconcile every object at start and write status.observedGeneration", nil},
	{codeConditionWorse, finding.Error, "An object was Available or Ready before the upgrade and is not any more.",
		"see the condition's reason and message, and what the manager's log says of the object", nil},
	{codeOperandChanged, finding.Warning, "The new version changed what the old one had made for an object that nobody changed. That may be its purpose; it may " +
		"also be that the object means something else in the version that the new release reads.",
		"look whether each field was meant to change; if not, see what conversion and defaults make of the object", nil},
	{codeOperandRestarted, finding.Warning, "Containers that run for an object were restarted during the upgrade.",
		"see why they ended; an upgrade of the operator should leave them alone", nil},
	{codeOperandOutage, finding.Warning, "A Service that the operator made for an object had no ready endpoint for a while during the upgrade: its clients were not served.",
		"do not roll operands out when the operator is upgraded, or do so with a surge and readiness probes", nil},
	{codeHotLoop, finding.Warning, "The operator writes whenever it looks at an object, although there is nothing to do. Each write makes it look again, and others too: " +
		"that is load without end.",
		"compare before writing, and keep times and counters out of what is compared", nil},
	{codeNotReconciled, finding.Error, "The new version's operator does not reconcile an object that the old version reconciled: it writes nothing for it, also when the object changes.",
		"see who leads, what the API server refused and what the manager's log says; reconcile every object when the manager starts, also those that older releases made", []string{"EDG008"}},
	{codeOperandWorse, finding.Error, "What the operator made for an object was ready before the upgrade and is not any more: users are not served.",
		"see the events and conditions of what the message names, and what the new version changed in it", nil},
	{codeOperandImage, finding.Error, "The new version runs an image for an object that cannot be had, where the old version's ran: nothing shows that it exists, or that it works.",
		"use an image that can be pulled, and give its program with --image REF=PROGRAM", []string{"IMG005"}},

	{codeStoredVersions, finding.Info, "status.storedVersions names versions besides the storage version: no later release may drop them before the stored objects are migrated.",
		"migrate: write every object once, then take the old versions out of status.storedVersions", nil},
	{codeLeftBehind, finding.Warning, "Something that was made for the old version is still there although nothing owns it.",
		"let the operator or the bundle remove it", nil},
	{codeUninstall, finding.Error, "Objects that users delete stay: the operator runs and does not remove their finalizers, so uninstalling does not end by itself either.",
		"remove every finalizer that a released version ever set, also under its old name; do not rename one without removing the old", nil},
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

	{codeNotProvable, finding.Warning, "This cannot be proved here, because pods were simulated whose images could not be had.",
		"give the program with --image REF=BINARY", nil},
	{codeSlow, finding.Info, "The cluster as a whole answered slowly, so that outages are measured less exactly than to the tenth of a second.",
		"give the walk more of the machine", nil},
	{codeWalkEnded, finding.Error, "The walk itself could not go on, so the hops after it were not walked: the cluster or the machine failed, not the package.",
		"see the message; what was found until then stands", nil},
	{codeNotRun, finding.Error, "The operator itself was not run, because its images could not be had, and --require-images asks for it: its pods were simulated, so nothing " +
		"that its program does was tested.",
		"give the program of each image with --image REF=PROGRAM, or let the cluster reach the registry that has it", nil},
}

// find returns the finding of code about object, with the code's severity and fix.
func find(code, object, format string, args ...any) finding.Finding {
	for _, c := range Codes {
		if c.Code == code {
			f := finding.Finding{
				Code: code, Severity: c.Severity, Subject: finding.Subject{Object: object},
				Message: fmt.Sprintf(format, args...), Fix: c.Fix,
			}
			if c.Severity == finding.Error && len(c.Static) > 0 {
				f.Fix += "; 'olmkit catalog validate' may tell it before anything is installed: " + strings.Join(c.Static, ", ")
			}
			return f
		}
	}
	panic("upgrade: no such code: " + code)
}
