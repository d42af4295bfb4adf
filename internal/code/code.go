// Package code holds the codes of the findings that a walk can have: what each means, how bad it is and what the author can do.
package code

import (
	"fmt"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
)

// Kind is one kind of finding that a walk can end in.
type Kind struct {
	Code     string
	Severity finding.Severity // what it is unless the pods concerned were simulated
	Doc      string           // what was seen, and why it matters
	Fix      string           // what the author can do
	Static   []string         // the checks of a catalog that may have told beforehand
}

// The codes of the family U: what was seen while upgrading.
const (
	NotChosen        = "U101"
	PlanFailed       = "U102"
	NotSucceeded     = "U103"
	Crashed          = "U104"
	NotStable        = "U105"
	OldVersionStays  = "U106"
	BaseFailed       = "U107"
	StoredRefused    = "U108"
	ObjectsRefused   = "U109"
	PlanWarning      = "U110"
	ConversionBlocks = "U111"
	Unmet            = "U112"
	UnsafeDefinition = "U113"

	Restarted  = "U201"
	Rollouts   = "U202"
	Reinstalls = "U203"
	NobodyLed  = "U204"
	LogErrors  = "U205"
	Panics     = "U206"
	TwoLocks   = "U207"
	Exits      = "U208"
	NotElected = "U209"

	Forbidden  = "U211"
	NoResource = "U212"
	Conflicts  = "U213"
	Invalid    = "U214"
	Denied     = "U215"

	Unreadable      = "U301"
	FieldLost       = "U302"
	RoundTrip       = "U303"
	Unconverted     = "U304"
	WriteLost       = "U305"
	ObjectGone      = "U306"
	DefaultChanged  = "U307"
	ManifestRefused = "U308"
	ServedWrong     = "U309"
	VersionGone     = "U310"
	SampleRefused   = "U311"
	SampleMissing   = "U312"
	LostAtOnce      = "U313"
	SampleUnknown   = "U314"
	Assertion       = "U315"
	AfterHop        = "U316"
	FuzzLost        = "U317"
	FuzzRefused     = "U318"

	ReadOutage      = "U401"
	WriteOutage     = "U402"
	OutageStays     = "U403"
	AdmissionOutage = "U404"

	OperandReplaced  = "U501"
	OperandRolled    = "U502"
	StatusStale      = "U503"
	ConditionWorse   = "U504"
	OperandChanged   = "U505"
	OperandRestarted = "U506"
	OperandOutage    = "U507"
	HotLoop          = "U508"
	NotReconciled    = "U509"
	PortGone         = "U510"
	OperandWorse     = "U511"
	DriftStays       = "U512"
	OperandImage     = "U513"
	DoesLess         = "U514"
	DataLost         = "U515"
	Credentials      = "U516"
	NewIgnored       = "U517"
	NewUnowned       = "U518"
	ChangeRefused    = "U519"
	StatusGone       = "U520"
	Unguarded        = "U521"
	ReadyEarly       = "U522"
	PodSecurity      = "U523"
	Unsteady         = "U524"
	Behind           = "U525"
	Narrowed         = "U526"
	MetricsGone      = "U527"
	MetricsOpen      = "U528"
	MetricsLess      = "U529"
	RestartChanges   = "U530"

	StoredVersions    = "U601"
	LeftBehind        = "U602"
	Uninstall         = "U603"
	Orphans           = "U604"
	DefinitionDropped = "U605"
	Leftovers         = "U606"
	DiffersFromFresh  = "U607"
	TakenAlong        = "U608"
	TakenHalfway      = "U609"
	DefinitionDeleted = "U610"
	WebhookLeft       = "U611"

	FaultBroke   = "U701"
	FaultIgnored = "U702"

	RollbackFailed    = "U801"
	LostInRollback    = "U802"
	IdleAfterRollback = "U803"
	RolledBack        = "U804"

	NotProvable = "U901"
	Slow        = "U902"
	WalkEnded   = "U903"
	NotRun      = "U904"
	Woken       = "U905"
)

// All lists every code of the family U, in order.
var All = []Kind{
	{NotChosen, finding.Error, "OLM does not choose the upgrade although the catalog offers it, so users stay on the old version.",
		"compare the channel entry's replaces, skips and skipRange with the installed version, and read what OLM says of the installed package", nil},
	{PlanFailed, finding.Error, "OLM failed to apply the new version's manifests and does not retry: the upgrade is stuck until someone intervenes.",
		"change the manifest that the message names, so that OLM and the API server accept it on top of the old version", []string{"CRD005"}},
	{NotSucceeded, finding.Error, "The new version was not installed before the timeout.",
		"read the condition and the log lines; what the installation waits for must become ready without help", []string{"EDG001"}},
	{Crashed, finding.Error, "The new version's operator crashes: its container exits again and again.",
		"run the manager with the permissions, arguments and certificates of the bundle, and fix what its last log lines say", nil},
	{NotStable, finding.Error, "The new version was installed, and then did not stay so.",
		"keep the operator's Deployments available, and do not change what OLM creates for them (certificates, webhooks, RBAC)", nil},
	{OldVersionStays, finding.Error, "The old version was not removed although the new one was installed.",
		"look for finalizers on it, and for a replaces that does not name it", nil},
	{BaseFailed, finding.Error, "The version to upgrade from cannot be installed, so the upgrade from it was not tested.",
		"find out why OLM cannot install it; users who run it installed it in another way", nil},
	{StoredRefused, finding.Error, "The new CRD drops a version that is in status.storedVersions. OLM refuses it, and the upgrade fails.",
		"keep the version in the CRD (served: false is allowed) until a release has migrated the stored objects and updated storedVersions", []string{"CRD001", "CRD002"}},
	{ObjectsRefused, finding.Error, "Existing objects are invalid under the new CRD's schema, so OLM refuses to apply the CRD.",
		"do not tighten the schema of a released version; add a new version with conversion", []string{"CRD006", "CRD008"}},
	{PlanWarning, finding.Info, "OLM or the API server warned during the installation.", "", nil},
	{ConversionBlocks, finding.Error, "The installation failed because conversion did not work: OLM lists the existing objects before it writes a CRD. When OLM repeats " +
		"its steps, the CRD that it wrote before has a webhook that is not ready yet.",
		"let the new version become ready within the minute that OLM gives an installation; find out what delays it", nil},
	{Unmet, finding.Error, "OLM waits for a requirement that cannot be met: a newer Kubernetes, or an API that neither the bundle nor the catalog nor the cluster provides.",
		"ship the API with the bundle or in the same catalog, or no longer require it", []string{"EDG007", "CSV009", "DEP002"}},
	{UnsafeDefinition, finding.Error, "OLM v1 refuses the upgrade: its CRD upgrade safety finds that the new CRD may break existing objects.",
		"keep the CRD compatible, and put the change into a new version; users who want the upgrade as it is set " +
			"spec.install.preflight.crdUpgradeSafety.enforcement: None of the ClusterExtension", []string{"OLM005"}},

	{Restarted, finding.Warning, "A container of the operator restarted during the upgrade.",
		"let the manager wait for what it needs (certificates, API versions) instead of exiting", nil},
	{Rollouts, finding.Warning, "A Deployment of the operator was rolled out more than once in one upgrade.",
		"keep what OLM adds to the pod template stable: the webhooks' Deployment and its certificates", nil},
	{Reinstalls, finding.Info, "The old version was installed again before it was replaced.", "", nil},
	{NobodyLed, finding.Info, "For some seconds no pod of the operator was leader, so nothing was reconciled: the new leader waited until the old lock expired. It is a warning if the new version began to keep its lock, and an error if that lasts a minute or more.",
		"release the lock when the manager stops: set LeaderElectionReleaseOnCancel in controller-runtime's options, and exit as soon as the manager has stopped", nil},
	{LogErrors, finding.Warning, "The new version's manager logs the same error again and again, also after the upgrade. If the old version logged it as well, this " +
		"is a note.",
		"read the error in the log: what the manager tries to do there fails", nil},
	{Panics, finding.Error, "The new version's manager panics. If its controllers recover, the object is not reconciled; otherwise the process exits. " +
		"If the old version panicked in the same way, this is a warning.",
		"run the function that the log names on the object that it names; objects of older releases lack the new fields", nil},
	{TwoLocks, finding.Warning, "The new version elects its leader with another lock than the old version, so neither waits for the other: both may reconcile " +
		"at the same time.",
		"keep the lock's name and kind (LeaderElectionID, LeaderElectionNamespace) in every release", nil},
	{Exits, finding.Error, "The new version's operator ended by itself after the upgrade, while objects were changed and created as users do: nothing is " +
		"reconciled until it runs again. If the old version ended as well, or if it ended because it could not renew its lock in time, this is a warning.",
		"read in the container's previous log what it ended for, and return an error from the reconciler instead of ending the process", nil},
	{NotElected, finding.Warning, "The new version's operator elects no leader, and the old version's did: during each rollout the old and the new pod reconcile at the same time, " +
		"and with several replicas they always do.",
		"elect a leader in every release: set LeaderElection and LeaderElectionID in controller-runtime's options, and keep the arguments that switch it on", nil},

	{Forbidden, finding.Error, "The API server refuses requests of the operator's ServiceAccount that the operator needs (401 or 403). If it refused the old " +
		"version the same, this is a warning. Some clusters refuse more: owner references that block deletion need the right to update the owner's finalizers on OpenShift.",
		"grant the ServiceAccount what the API server's message names, or do not request it", []string{"EDG008"}},
	{NoResource, finding.Error, "The operator requests a resource that the API server does not have (404): its CustomResourceDefinition is missing, or does " +
		"not serve the version. If the old version did the same, this is a warning.",
		"own or require the CRD in the ClusterServiceVersion, or use the resource only where discovery lists it", nil},
	{Conflicts, finding.Error, "Every update of an object by the operator ends in a conflict (409), so it is never written. If the old version had the same " +
		"conflicts, or the walk installed the version to go on from it, this is a warning.",
		"read the object again before each update, or use server-side apply with the operator's own field manager and force", nil},
	{Invalid, finding.Error, "The API server rejects what the operator writes as invalid (422), for example a change of an immutable field, so the object is not " +
		"changed. If it rejected the old version's writes the same, or the walk installed the version to go on from it, this is a warning.",
		"do not change immutable fields; if one has to change, create an object with another name and migrate, or delete and " +
			"recreate the object in a release whose notes say so", nil},
	{Denied, finding.Error, "An admission webhook or policy denies the operator's writes. If it denied the old version's writes too, or the walk installed the version " +
		"to go on from it, this is a warning.",
		"write what the webhook accepts, also for objects that are older than the webhook; the operator's own webhooks must allow its writes of " +
			"status and finalizers", nil},

	{Unreadable, finding.Error, "After the upgrade an object cannot be read in a version that the API server serves.",
		"convert every stored object to every served version in the conversion webhook", nil},
	{FieldLost, finding.Error, "A field that the author of an object set is lost after the upgrade.",
		"convert without loss: keep what a version has no field for, for example in an annotation", []string{"CRD004"}},
	{RoundTrip, finding.Error, "Reading an object in a version and writing it back unchanged loses or changes fields.",
		"convert without loss: keep what a version has no field for, for example in an annotation", nil},
	{Unconverted, finding.Error, "An object is stored with fields that its stored version does not have: it was stored without conversion.",
		"put spec.conversion with the webhook into the bundle's CRD, so that strategy None never applies while several versions are served", []string{"WHK007"}},
	{WriteLost, finding.Error, "A write that the API server acknowledged during the upgrade is lost.",
		"find out when it was lost, and what OLM changed at that moment", nil},
	{ObjectGone, finding.Error, "An object was deleted, or replaced by another of the same name, during the upgrade.",
		"never delete and recreate users' objects; do not drop the CRD", nil},
	{DefaultChanged, finding.Warning, "A field that the author did not set in this version has another value after the upgrade: its default changed, or conversion sets it. Or a new object does not get it, or the operator writes it into one. " +
		"The cause says which.",
		"keep the defaults of a released version", []string{"CRD010"}},
	{ManifestRefused, finding.Error, "A manifest that the old version accepted is rejected by the new one, or loses fields.",
		"keep accepting what a served version accepted", []string{"CRD006", "CRD007", "CRD019"}},
	{ServedWrong, finding.Error, "During the upgrade objects were served with other content than was written. A client that writes back what it reads destroys it.",
		"put spec.conversion with the webhook into the bundle's CRD, so that strategy None never applies while several versions are served", []string{"WHK007"}},
	{VersionGone, finding.Warning, "A version is not served any more: clients that use it break with this upgrade.",
		"announce it with deprecated: true at least one release earlier", []string{"CRD003", "CRD012"}},
	{SampleRefused, finding.Warning, "The API server rejects a sample, so nothing was verified with it.",
		"make the sample valid: users copy it from the console", []string{"CSV015"}},
	{SampleMissing, finding.Info, "A kind has no sample, so nothing was verified for its objects.",
		"add one to alm-examples, or pass one with --sample", []string{"CSV016"}},
	{LostAtOnce, finding.Error, "A field of an object is lost when it is written.",
		"convert without loss: keep what a version has no field for, for example in an annotation", nil},
	{SampleUnknown, finding.Warning, "A sample has fields that the schema does not have. The API server drops them silently.",
		"correct the sample, or add the fields to the schema", []string{"CSV015"}},
	{Assertion, finding.Error, "An object does not match an assertion of --assert. The message names the fields, the expected and the actual values.",
		"check what the release does to these fields; if it is right, correct the assertion", nil},
	{AfterHop, finding.Error, "A function that a Go test passed to upgradetest.AfterHop returned an error after the hop.",
		"read the error; the function has it from the cluster as it is after the hop", nil},
	{FuzzLost, finding.Error, "An object that the walk made of the schema, as --fuzz says, loses or changes fields between versions. Where --fuzz is not given, it is a note if the previous version loses them as well. The message has the least such object, and the seed that makes it again.",
		"convert without loss: keep what a version has no field for, for example in an annotation", []string{"CRD004"}},
	{FuzzRefused, finding.Warning, "The conversion webhook fails for an object that the walk made, as --fuzz says, and that the schema accepts. Whoever stores such an object makes every list of " +
		"this kind fail in the other version, for all users.",
		"convert whatever the schema accepts, or narrow the schema (pattern, format, enum, a CEL rule), first in a release that warns", nil},

	{ReadOutage, finding.Warning, "Objects could not be read in a served version for some time.",
		"remove the cause that the finding names", []string{"WHK008"}},
	{WriteOutage, finding.Warning, "Objects could not be written in a served version for some time.",
		"remove the cause that the finding names", []string{"WHK008"}},
	{OutageStays, finding.Error, "Objects still cannot be read or written in a served version after the upgrade.",
		"let the new version's webhooks answer for every served version", []string{"WHK005", "WHK006"}},
	{AdmissionOutage, finding.Warning, "Writes were refused for some time because the API server could not call an admission webhook of the operator, or did not trust its certificate. " +
		"Reads worked: they do not call admission webhooks.",
		"keep serving webhooks for some seconds after SIGTERM, and become ready only when the webhook server listens; run two replicas", []string{"WHK008"}},

	{OperandReplaced, finding.Warning, "An operand was deleted, or replaced by another of the same name.",
		"update operands in place; keep their names and selectors", nil},
	{OperandRolled, finding.Info, "The upgrade replaced pods of operands.", "", nil},
	{StatusStale, finding.Warning, "The new version does not update an object's status: status.observedGeneration stays behind. It is an error if a field of the status does not follow a change of the spec any more.",
		"reconcile every object at start, and write status.observedGeneration, and the rest of the status, in each reconcile", nil},
	{ConditionWorse, finding.Error, "An object said in its status that it serves, and does not any more: Available, Ready or another condition of what works is not True, Degraded, Failed or Stalled is, or its phase is Failed, Error or Degraded; " +
		"or it says without end that it is being changed, or that it is not well while it is asked for none, where it was well with the old version.",
		"read the condition's reason and message, and the manager's log about the object", nil},
	{OperandChanged, finding.Warning, "The new version changed an operand of an object that nobody changed, or took labels or annotations from it. It is an error if it takes annotations away that others put there, takes from containers a Secret that is still there, changes an object that is not its own beside what it makes, or has what is made for objects of one namespace tell of those of another, and no more than an info if only the tag or the digest of an image is another, of the same major version, or if pods only get more containers, variables or volumes. This may be its purpose, or the object means something else " +
		"in the version that the new release reads.",
		"check whether each change is meant; if so, suppress it (docs/suppress.md); if not, check conversion and defaults of the object", nil},
	{OperandRestarted, finding.Warning, "Containers of operands restarted during the upgrade.",
		"find out why they exited; an upgrade of the operator should not restart them", nil},
	{OperandOutage, finding.Warning, "A Service of an operand had no ready endpoint for some time during the upgrade: its clients were not served.",
		"do not roll operands out when the operator is upgraded, or roll them out with a surge and readiness probes", nil},
	{HotLoop, finding.Warning, "Reconcile hot loop: every reconcile writes, although there is nothing to do, and each write triggers the next reconcile, without end; or each reconcile asks for the next, and the operator keeps the API server or a processor busy; or it deletes what it made and makes it anew, over and over, as where each object's reconcile deletes what is another's. A loop that the release before did not have is an error. Or whenever the operator looks at an object, it says something else in it or, as the release before did not, sends an Event.",
		"compare before writing, and leave times and counters out of the comparison; do not requeue without a reason or a pause", nil},
	{NotReconciled, finding.Error, "The new version does not reconcile an object that the old version reconciled: it writes nothing for it, even when the object changes.",
		"check who is leader, what the API server refused, and the manager's log; reconcile every object when the manager starts, also those of older releases", []string{"EDG008"}},
	{PortGone, finding.Error, "A Service of an operand, or of the operator itself, does not offer a port any more, offers it in another way, or leads nowhere or to other servers, also one that is made for a new object, no Ingress leads from a host and path any more, or a Secret, a ConfigMap or a status says an address at which there is no Service: clients that use it fail.",
		"keep the type, the ports, their names and the selector; a new port comes beside the old one", nil},
	{OperandWorse, finding.Error, "An operand was ready before the upgrade and is not any more, or one that the new version adds does not get ready; or what guards or scales pods does not find them any more, or lets none be evicted; or a RoleBinding takes its role from a user or a group, or gives it to everybody.",
		"read the events and conditions of what the message names, and check what the new version changed in it", nil},
	{DriftStays, finding.Error, "The new version does not correct what somebody else changed or deleted of what it made; the old version did.",
		"watch every kind that the operator creates (Owns in controller-runtime's builder), and compare the spec on each reconcile", nil},
	{OperandImage, finding.Error, "The new version runs an operand image that is not available, where the old version's image ran: nothing shows that it exists, or that it works.",
		"use an image that can be pulled, or pass its program with --image REF=PROGRAM", []string{"IMG005"}},
	{DoesLess, finding.Error, "The new version does less about an object than the old version: after the same small change of the object, or of a Secret or ConfigMap that it " +
		"names, a workload or the status that the old version changed stays as it was; or what the object asks for reaches nothing that is made for it any more; or pods are not replaced when what they are made from changes; or it goes on as if a text were still there that is left out, or as if it were asked for some where it is asked for none; or a pause is not honoured; or a namespace that is new, or chosen later, gets nothing of what the object has in each that it chooses, or keeps it when it is chosen no more; or what the old version made of an object that is deleted, as a backup, is not made any more; or an object of which no pod runs, or that is paused, or of which what it names is gone, cannot be deleted; or what belongs to others is deleted with it; or another choice than the sample's makes no difference any more, or nothing heeds what an object says of its own end, or what was changed of a workload of the user's that an object names stays so, or admission webhooks set nothing any more in what is not the operator's, or no Job is made any more where one was from time to time. " +
		"It is a warning if one workload of several does not follow, if the schema says that the field is deprecated, if nothing went before when a text was left out, or if another finalizer keeps the object, or may do what a Job did; and that new objects have no finalizer or no Events any more, or that all takes ten times as long.",
		"watch what objects name, not only the objects; tell 0 and what is left out apart, and delete what is not asked for any more; leave what is paused alone; remove the finalizer last; update what exists, not only what is missing; keep the operands' names, or move the data and delete the old ones; write the status after each change", nil},
	{DataLost, finding.Error, "What a volume of an operand held is gone, or nothing reads it any more; or the new version deletes with an object what the old version kept, also by making it the owner of a Secret or ConfigMap of the user's; or it deletes an object that is not its own beside what it makes.",
		"keep claims, and the names of workloads and volumeClaimTemplates; where a name has to change, copy the data first, by a Job that mounts both volumes: then it is a warning", nil},
	{Credentials, finding.Error, "The new version changed a password or key that the old version made, or deleted the Secret or ConfigMap that an object's status names: clients that have it, or read it there, are refused. Or what is no Secret says it as well, for all to read, or the operator's log. Or it makes the same one for each object, and the old version made another for each; or another one when a field of the object is changed.",
		"make credentials only where there are none yet, and leave them where the status says that they are; let pods read them from the Secret (secretKeyRef, a volume), and never write them anywhere else", nil},
	{NewIgnored, finding.Error, "The new version does less for an object that is created after the upgrade than for one that was there before, or for one that has the name of another that was deleted, or that was there before what it names, a Secret, a ConfigMap or an object of another kind of the operator's, or in a namespace that is newer than the operator's pod; the old version did the same for both.",
		"test the operator with a new object, not only with what the old version made: what is created may need another right, a field that only old objects have, or a watch that starts too late; keep nothing in memory by an object's name alone, but by its UID; watch what objects name, or ask for it again; watch all namespaces, not those that there are when the operator starts", nil},
	{NewUnowned, finding.Error, "What the new version makes for a new object stays when the object is deleted: it has no owner reference, or cannot have one, as what is of the cluster's scope or in another namespace, and the operator does not delete it. What the old version made was deleted. Or what there is for an object that was there before the upgrade stays when that is deleted, and what there is for a new one does not. " +
		"It is a warning if it is a Secret, and claims stay as well: the data may need it; and for a backup, a snapshot, a volume or a namespace that is new.",
		"set the owner reference on whatever the operator creates (controllerutil.SetControllerReference), or delete it by a finalizer, which looks for what there is rather than remembers what it made", nil},
	{ChangeRefused, finding.Error, "Users cannot change a field of their objects any more that the old version let them change: an admission webhook, a policy or a rule of the schema refuses each change of it. " +
		"If other fields can be changed, or the old version ignored the change, this is a warning.",
		"refuse what cannot work, not each change; make a field immutable in a new version of the API", nil},
	{StatusGone, finding.Warning, "The status of an object had a field or a condition before the upgrade that the new version leaves out: who reads it, as a script or another operator, finds nothing.",
		"go on writing what a served version's status had, or announce that it ends", nil},
	{Unguarded, finding.Error, "Nobody refuses any more what an admission webhook or a policy of the old version refused, so users can ask for what the operator cannot do. It is a warning, since it may be meant, if other fields are refused still, if only choices, what may be left out or what only changes may not say is allowed now, or if it is one field and nobody validates such objects any more.",
		"have the webhook, a policy or the schema's rules refuse what cannot work; say in the release notes what is allowed on purpose", nil},
	{ReadyEarly, finding.Error, "The status of a new object says that it is ready while none of its pods runs, or goes on to say so when none runs any more; with the old version it did so once they ran. Who waits for it, as `kubectl wait`, a pipeline or another operator, goes on too early, and nobody hears of an outage. " +
		"It is a warning if another condition, which is new, does tell.",
		"read the readiness of the workloads in each reconcile (status.readyReplicas of a Deployment or StatefulSet), and watch them", nil},
	{PodSecurity, finding.Warning, "What the new version runs for an object does not meet the Pod Security Standard that the old version's pods met: a namespace that enforces it, as those of OpenShift do, refuses the pods.",
		"keep runAsNonRoot, allowPrivilegeEscalation: false, the capabilities that are dropped and the seccompProfile in the pods' templates; say in the release notes what pods need now", nil},
	{Unsteady, finding.Error, "What the new version makes for an object says the same things in another order from one reconcile to the next: each time it is written again, and pods are replaced for nothing, where they are made from it or have a sum of it. It is a warning where they are not.",
		"go through maps in the order of their sorted keys, and sort what the API server or a cache lists", nil},
	{Behind, finding.Warning, "The new version makes something else for a new object than what an object of the same spec has that was there before the upgrade: what the old version made stays as it is, at least in part.",
		"write again what the old version made, also what a list no longer finds or an older owner of its fields keeps (managedFields; csaupgrade in client-go moves them to server-side apply); say in the release notes what stays on purpose", nil},
	{Narrowed, finding.Warning, "The schema, an admission webhook or a policy of the new version refuses what users could ask for before, and what many do: one more or less of a number, another choice, or to leave a field out. An object that says so already may not be changed any more, perhaps not even to remove a finalizer; what the schema refuses keeps OLM from installing the version where such an object is. Or somebody sets another value for what users ask for. It may be meant. It is an error where some are set for none (0 of replicas, members and the like), and where what is refused is not the operator's, as somebody's pods.",
		"go on taking what a released version took; in an update look only at what changes, and let through what is being deleted; say in the release notes what is refused on purpose", []string{"CRD006", "CRD019"}},
	{MetricsGone, finding.Error, "The operator's metrics cannot be read any more: nothing answers at /metrics, or who has a token and may read them is refused. Prometheus finds nothing, and alerts stay silent.",
		"serve the metrics at a port that a Service leads to; who serves them to those who may read them needs the right to create tokenreviews and subjectaccessreviews", nil},
	{MetricsOpen, finding.Error, "Everybody who reaches the operator's pod can read its metrics without a token; with the old version only those could who may.",
		"serve them over TLS with FilterProvider: filters.WithAuthenticationAndAuthorization of controller-runtime, or behind a proxy that asks for a token", nil},
	{MetricsLess, finding.Warning, "The new version does not report a metric of its own, or a label of one, that the old version reported: alerts and dashboards that read it show nothing, without a word; or it goes on reporting an object that is gone. It may be meant. It is an info for a metric with labels, which has no series before there is something to count.",
		"report it under the old name as well for some releases, and say in the release notes what replaces it; delete the series of an object (DeletePartialMatch) when it is gone", nil},
	{RestartChanges, finding.Error, "When the new version's operator starts again, as on another node, it replaces pods, makes anew or deletes what it made, or sets other credentials, though nobody asked for anything. It is a warning for other fields, and for times in the status that begin anew.",
		"work out what is made from the spec and from what is there already, not from the moment or from memory; keep in the status, or in a Secret, what must outlast the process", nil},

	{StoredVersions, finding.Info, "status.storedVersions has versions besides the storage version: no later release may drop them before the stored objects are migrated.",
		"migrate with 'olmkit crd migrate CRD': write every object once, then remove the old versions from status.storedVersions", nil},
	{LeftBehind, finding.Warning, "An object that was created for the old version still exists, and nothing owns it.",
		"let the operator or the bundle delete it", nil},
	{Uninstall, finding.Error, "Deleted objects do not go away: the operator runs and does not remove their finalizers, so uninstalling hangs as well; or they do not go with their namespace, which then stays.",
		"remove every finalizer that a released version ever set, also under its old name; in a namespace that is deleted nothing can be made any more, so let go what cannot be saved there", nil},
	{Orphans, finding.Info, "OLM leaves objects on the cluster when the operator is uninstalled, besides its CRDs and their objects.",
		"nothing to fix in the bundle; tell administrators to delete them", nil},
	{DefinitionDropped, finding.Warning, "The new version does not own a CRD any more that the old version owned. The CRD still exists, and nothing reconciles its objects.",
		"keep owning the CRD until its users have migrated, and tell them to delete it", []string{"CRD009"}},

	{Leftovers, finding.Error, "A deleted object of the package does not go away: uninstalling the operator hangs, and it cannot be installed again.",
		"look at the finalizers of what the message names, and let something remove them that still runs while the operator is uninstalled", nil},
	{DiffersFromFresh, finding.Warning, "Upgrades lead to other objects than a fresh install of the same release, so users of one version run two different operators.",
		"let each release create or delete all that differs; what OLM does not delete by itself, the operator has to", nil},
	{TakenAlong, finding.Info, "Uninstalling under OLM v1 deletes the CRDs, and with them all of the users' objects and what they own. OLM v0 leaves them.",
		"tell users to save their objects before they delete the ClusterExtension, and how to uninstall without losing them", nil},
	{TakenHalfway, finding.Warning, "Uninstalling under OLM v1 hangs: it deletes the operator and the CRDs at the same time, and then nobody removes the objects' finalizers, or " +
		"converts them. The CRD stays in deletion, so the package cannot be installed again.",
		"tell users to delete all objects before the ClusterExtension; do without a finalizer where owner references do", nil},
	{DefinitionDeleted, finding.Error, "The upgrade deleted a CRD that the new version does not own any more, and with it all of the users' objects. OLM v1 deletes what " +
		"a bundle does not contain any more; OLM v0 leaves CRDs.",
		"keep the CRD in the bundle until its users have saved or moved their objects", []string{"OLM008"}},
	{WebhookLeft, finding.Warning, "A webhook configuration that the operator made itself stays when the operator is uninstalled. Nobody answers the API server, which then refuses " +
		"all that it asks the webhook about: nothing of that can be created or changed any more.",
		"declare the webhook in the CSV's spec.webhookdefinitions, so that OLM removes it with the operator; or let it belong to something that goes with the operator", nil},

	{FaultBroke, finding.Error, "The upgrade did not recover from an injected fault: it did not complete, or something was lost.",
		"let the operator start from any state that it finds, and wait for what it needs instead of giving up", nil},
	{FaultIgnored, finding.Error, "An injected fault that should block the upgrade did not: OLM continued too early.",
		"check what OLM said of the installed version and of the upgrade at that time", nil},

	{RollbackFailed, finding.Error, "After a failed upgrade the previous version could not be reinstalled with the objects in place: the only way is " +
		"to delete the CRDs with all objects and to restore a backup.",
		"add a version in one release and store it in the next, so that the previous release always knows the stored version; keep serving what it serves", []string{"CRD001", "CRD002"}},
	{LostInRollback, finding.Error, "After a failed upgrade and a rollback, an object has other content than before.",
		"convert without loss in both directions, and migrate nothing that the previous version cannot read", nil},
	{IdleAfterRollback, finding.Warning, "After the rollback the previous version runs, but does not reconcile an object as it did before.",
		"change nothing in the new version that the previous one needs: finalizers, locks, labels and names of operands", nil},
	{RolledBack, finding.Info, "After a failed upgrade the rollback worked: the previous version was reinstalled, and objects are unchanged.", "", nil},

	{NotProvable, finding.Warning, "Not verified: pods were simulated because their images were not available.",
		"pass the program with --image REF=PROGRAM", nil},
	{Slow, finding.Info, "The whole cluster answered slowly, so outages are measured less exactly than to a tenth of a second.",
		"run the walk on a less loaded machine", nil},
	{WalkEnded, finding.Error, "The walk could not continue, so the remaining hops were not tested: the cluster or the machine failed, not the package.",
		"read the message; what was found before stands", nil},
	{NotRun, finding.Error, "The operator was not run because its images were not available, and --require-images is set: its pods were simulated, so nothing " +
		"of its program was tested.",
		"pass the program of each image with --image REF=PROGRAM, or let the cluster reach the registry that has it", nil},
	{Woken, finding.Warning, "OLM put the upgrade off, or its old and new version wait for each other, or OLM left the new version without rights: it went on only when its objects were touched. " +
		"What OLM put off, it does by itself up to 17 minutes later; the others, never.",
		"nothing to fix in the bundle; whoever meets it can put a label on the ClusterServiceVersion, so that OLM looks again (an annotation would restart the operator)", []string{"CRD022"}},
}

// Finding returns the finding of code about object, with the code's severity and fix.
func Finding(code, object, format string, args ...any) finding.Finding {
	for _, c := range All {
		if c.Code == code {
			f := finding.Finding{
				Code: code, Severity: c.Severity, Subject: finding.Subject{Object: object},
				Message: fmt.Sprintf(format, args...), Fix: c.Fix,
			}
			if c.Severity == finding.Error && len(c.Static) > 0 {
				f.Fix += "; 'olmkit catalog validate' can find it before anything is installed: " + strings.Join(c.Static, ", ")
			}
			return f
		}
	}
	panic("code: no such code: " + code)
}
