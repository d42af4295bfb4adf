// Package leader is leader election for life: one pod of several leads until it has ended. The lock is a ConfigMap that the
// leader's pod owns, so the garbage collector deletes it after the pod. A container that restarts in the pod still leads.
//
// # Use
//
// [Become] blocks until the pod leads:
//
//	if err := leader.Become(ctx, "my-operator-lock"); err != nil {
//		return err
//	}
//
// Outside of a cluster it returns nil at once and logs that. A manager of controller-runtime that has to serve webhooks, or to be
// ready, before it leads takes a [Lock] for its elector instead (LeaderElectionResourceLockInterface, [Lock.Release] after
// the manager has ended): with Become, a rollout with maxUnavailable 0 would wait for ever.
//
// The pod's service account must be allowed to get, create and update ConfigMaps and to get pods in its namespace, and to
// get nodes; delete of the ConfigMap, too, where the API server has the admission plugin
// OwnerReferencesPermissionEnforcement, as OpenShift's.
//
// # When another pod leads
//
// Candidates look at the lock again and again, at first after 1 s, then after twice as long each time, up to 16 s. A candidate
// claims the lock when the leader's pod
//
//   - is gone,
//   - has failed or succeeded: evicted by the kubelet, preempted, or its node shut down,
//   - is on a node that is unreachable or gone.
//
// It leads 18 s later ([Wait]). The leader reads the lock every 2 s and, when it finds it claimed or could not read it for
// 10 s, ends the process, or calls the function of [OnLost].
//
// Prefer a lease (client-go's leaderelection) unless two leaders at a time do harm: it fails over sooner. The page
// docs/leader-election.md of the repository compares them, with measurements.
//
// # Why there are never two leaders
//
// Whoever takes the lock writes it under the condition that it is as it was read (resourceVersion), so one of several
// wins. A lock is free only when its holder wrote that into it, after its controllers had stopped (Release). Any other
// lock, because its pod is gone, has failed or is on a lost node, or because somebody deleted it, is first claimed, and
// the claimant leads no sooner than Wait after its claim was written.
//
// A leader writes nothing, but reads the lock again every Period, and stops when it is another's. Such a read is answered
// from etcd's quorum (no resourceVersion is asked for), so one that still shows the lock as the leader's own was made
// before the claim. Say that the claim is written at t. The last such read is answered by t + 3 s, since the client
// waits no longer; the next round begins Period later and is tried for Deadline (client-go v0.36.3,
// tools/leaderelection/leaderelection.go, renew). So by t + 3 s + Period + Deadline, 15 s, the elector has ended
// whether the former leader can reach the API server or not, and the manager returns at once (controller-runtime v0.24.1,
// pkg/manager/internal.go, OnStoppedLeading takes the grace period away) and the process with it. After Become, the process
// ends no later than that. Wait is 3 s more.
//
// Clocks need not agree, only run about equally fast. And the claimant need not be right about the former leader: its pod
// may have been deleted by force, its node's kubelet be dead while the containers run on, its phase be somebody's
// invention. With a lost node there is more time still: Kubernetes calls it unreachable 40 s (50 s since 1.32) after its
// last sign of life (kube-controller-manager's --node-monitor-grace-period), when a leader cut off with it has long
// stopped.
//
// What no lock can do is fence (client-go says so of its own in the package's comment): a process that was halted, with
// its machine, for longer than all that writes what it was about to write when it goes on, up to its next read; and a
// request that is on its way arrives.
//
// # What is different from operator-lib
//
// In operator-lib (leader/leader.go) a leader never looks at the lock again: when it is taken from it, by hand or because
// its node counted as lost for a moment, there are two. It deletes the pods of the dead, which takes the right to delete
// pods; here the lock is rewritten. It knows a pod by its name; here the UID decides. Both take each other's locks for
// what they are.
package leader
