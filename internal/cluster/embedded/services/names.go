package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/miekg/dns"
	"golang.org/x/net/netutil"
	"golang.org/x/net/publicsuffix"
	"golang.org/x/sync/semaphore"
)

// Domain is the domain of the cluster's names.
const Domain = "cluster.local"

const (
	dnsPort     = 53
	maxHops     = 8   // of aliases that are followed
	mostAnswers = 64  // that are looked up at a time
	mostCallers = 256 // by TCP at a time
)

// names answers for the names that a directory knows.
type names struct {
	directory
	places *semaphore.Weighted // for each answer that is looked up
}

// serveNames answers for the names that d knows at address, by UDP and TCP, until ctx ends.
func serveNames(ctx context.Context, address string, d directory) error {
	packets, err := net.ListenPacket("udp", address)
	if err != nil {
		return fmt.Errorf("serve the names of Services: %w", err)
	}
	listener, err := net.Listen("tcp", packets.LocalAddr().String())
	if err != nil {
		return errors.Join(packets.Close(), fmt.Errorf("serve the names of Services: %w", err))
	}
	handler := names{d, semaphore.NewWeighted(mostAnswers)}
	for _, server := range []*dns.Server{{PacketConn: packets, Handler: handler}, {Listener: netutil.LimitListener(listener, mostCallers), Handler: handler}} {
		go func() { _ = server.ActivateAndServe() }()
	}
	context.AfterFunc(ctx, func() {
		_ = packets.Close()
		_ = listener.Close()
	})
	return nil
}

// ServeDNS answers a question. While too many are asked they are not heard; who asked asks again.
func (n names) ServeDNS(w dns.ResponseWriter, request *dns.Msg) {
	if !n.places.TryAcquire(1) {
		return
	}
	defer n.places.Release(1)
	answer := new(dns.Msg).SetReply(request)
	answer.Authoritative, answer.RecursionAvailable = true, true
	switch {
	case len(request.Question) != 1:
		answer.Rcode = dns.RcodeFormatError
	case request.Question[0].Qclass != dns.ClassINET:
		answer.Rcode = dns.RcodeRefused
	default:
		answer.Answer, answer.Rcode = n.answer(request.Question[0])
	}
	size := dns.MinMsgSize
	if extended := request.IsEdns0(); extended != nil {
		size = int(extended.UDPSize())
		answer.SetEdns0(extended.UDPSize(), false)
	}
	if w.LocalAddr().Network() == "tcp" {
		size = dns.MaxMsgSize
	}
	answer.Truncate(size)
	_ = w.WriteMsg(answer)
}

// answer answers a question with what it finds and how that ended.
func (d directory) answer(question dns.Question) (answer []dns.RR, rcode int) {
	for range maxHops {
		name, inside := strings.CutSuffix(dns.CanonicalName(question.Name), "."+Domain+".")
		if !inside {
			return answer, elsewhere(name)
		}
		found, err := d.find(strings.Split(name, "."))
		if err != nil {
			return answer, dns.RcodeServerFailure
		}
		if found == nil {
			return answer, dns.RcodeNameError
		}
		answer = append(answer, found.records(question.Name, question.Qtype)...)
		if found.alias == "" || question.Qtype == dns.TypeCNAME {
			return answer, dns.RcodeSuccess
		}
		question.Name = found.alias
	}
	return answer, dns.RcodeServerFailure
}

// elsewhere is what is said of a name that is not the cluster's. There is no way out of the cluster, so nobody can be asked for it; but where its last label
// is no domain of the Internet there is no such name, as those that resolvers make of a Service's: they ask for name.namespace.svc. at last. Nor has an address
// a name.
func elsewhere(name string) (rcode int) {
	suffix, known := publicsuffix.PublicSuffix(strings.TrimSuffix(name, "."))
	if suffix != "arpa" && (known || strings.Contains(suffix, ".")) {
		return dns.RcodeServerFailure
	}
	return dns.RcodeNameError
}
