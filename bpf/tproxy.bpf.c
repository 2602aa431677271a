// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Gives connections to stations' addresses to the edge proxy's listener.
 *
 * Attached to the ingress of the interface towards the servers. A TCP segment to an address in `stations` is assigned to
 * its connection with the proxy, or, if it opens one, to the listener, and marked, so that routing takes it for this
 * machine. All else goes its ordinary way: what belongs to connections that the proxy has nothing to do with (made by the
 * station, or before the proxy came), and connections to ports in `passed`, which the station's agent does not serve.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Let other programs on the hook, and the stack, go on with the packet. */
#define PASS (-1)
#define IP_FRAGMENT 0x3fff
#define LISTEN 10

/* Octets of link-layer header: 14, or 0 on devices that have none. */
const volatile __u32 link_len = ETH_HLEN;
/* What routing knows the packets by. */
const volatile __u32 mark = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __be32);
	__type(value, __u32);
} stations SEC(".maps");

struct service {
	__be32 address;
	__be16 port;
	__u16 zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct service);
	__type(value, __u32);
} passed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} listener SEC(".maps");

SEC("tcx/ingress")
int tproxy_ingress(struct __sk_buff *skb)
{
	struct bpf_sock_tuple tuple = {};
	struct service service = {};
	struct bpf_sock *sk;
	struct tcphdr tcp;
	struct iphdr ip;
	__u32 zero = 0;
	long failed;

	if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, link_len, &ip, sizeof(ip)))
		return PASS;
	if (ip.version != 4 || ip.ihl < 5 || ip.protocol != IPPROTO_TCP || (ip.frag_off & bpf_htons(IP_FRAGMENT)))
		return PASS;
	if (!bpf_map_lookup_elem(&stations, &ip.daddr))
		return PASS;
	if (bpf_skb_load_bytes(skb, link_len + ip.ihl * 4, &tcp, sizeof(tcp)))
		return PASS;
	tuple.ipv4.saddr = ip.saddr;
	tuple.ipv4.daddr = ip.daddr;
	tuple.ipv4.sport = tcp.source;
	tuple.ipv4.dport = tcp.dest;
	sk = bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	if (sk && sk->state == LISTEN) {
		/* A service of this machine that listens on every address. */
		bpf_sk_release(sk);
		sk = 0;
	}
	if (!sk) {
		service.address = ip.daddr;
		service.port = tcp.dest;
		if (!tcp.syn || tcp.ack || bpf_map_lookup_elem(&passed, &service))
			return PASS;
		sk = bpf_map_lookup_elem(&listener, &zero);
	}
	if (!sk)
		return PASS;
	failed = bpf_sk_assign(skb, sk, 0);
	bpf_sk_release(sk);
	if (!failed)
		skb->mark = mark;
	return PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
