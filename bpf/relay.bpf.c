// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A relay of ATP: at an interface's egress it writes the node's own delay D into datagrams that carry a smaller one.
 *
 * A datagram is ours if it is UDP, from or to one of `ports`, and its payload begins with version 1; D stands at offset 4 of the payload,
 * in microseconds (docs/reference/atp-header.md). The rule in Rust is `lasthop_wire::relay`, which this program is tested against.
 *
 * Packets that are to be segmented later (GSO) hold several datagrams behind one UDP header: each is stamped. The first fragment of a
 * datagram is stamped, the others hold no header. The UDP checksum is mended by the difference (RFC 1624); the kernel's helper leaves it alone
 * where the device, or the kernel behind this hook, has still to compute it (CHECKSUM_PARTIAL), and where it is zero: none.
 *
 * If the agent wants so, packets of ECN-capable transports are marked (CE) while D is above a threshold.
 *
 * D holds until the time that the agent sets ever anew. After that nothing is written: an agent that dies or stands still stamps nobody.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <stddef.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Let other programs on the hook, and the stack, go on with the packet. */
#define PASS (-1)
#define NOWHERE 0

#define HOPS 16
#define PORTS 8
/* IEEE 802.1ad allows two tags. */
#define TAGS 2
/* As many IPv6 extension headers as lasthop_wire::ip looks through. */
#define EXTENSIONS 4
/* UDP_MAX_SEGMENTS of the kernel. */
#define SEGMENTS 128
#define FRAGMENT_OFFSET 0x1fff
#define FRAGMENT_OFFSET6 0xfff8
#define MORE_FRAGMENTS 0x2000
#define HOP_BY_HOP 0
#define ROUTING 43
#define FRAGMENT 44
#define DESTINATION_OPTIONS 60
#define ECN 3

#define VERSION 1
#define DELAY_AT 4
/* What must be there of a datagram's payload. */
#define NEEDED 8

/* Ports in network order; zero: none. */
const volatile __be16 ports[PORTS] = {};
/* D from which on packets are marked, in microseconds; zero: never. */
const volatile __u32 mark_above = 0;

/* An interface that packets leave through. */
struct relay_hop {
	/* Zero: this place and all behind it are free. */
	__u32 ifindex;
	/* Octets of link-layer header: 14, or 0 on devices that have none. */
	__u32 link_len;
	/* Until when D holds, ns of CLOCK_MONOTONIC. */
	__u64 until;
	/* D in microseconds. */
	__u64 delay;
	/* Datagrams that are ours; of them, those in which D was raised, and those that came while no D held. */
	__u64 seen;
	__u64 stamped;
	__u64 stale;
	/* Datagrams of our ports that do not begin as ours. */
	__u64 other;
	/* Packets marked CE. */
	__u64 marked;
};

_Static_assert(sizeof(struct relay_hop) == 64, "crates/agents/src/relay/stamper.rs has it too");

struct relay_hop hops[HOPS] = {};

/* Where the datagrams of a packet stand. */
struct found {
	__u32 udp;
	/* Behind the last octet of payload. */
	__u32 end;
	/* They have a checksum. */
	__u32 has_sum;
};

static __always_inline void count(__u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

static __always_inline struct relay_hop *hop_of(__u32 ifindex)
{
	int i;

	for (i = 0; i < HOPS; i++) {
		if (hops[i].ifindex == ifindex)
			return &hops[i];
		if (!hops[i].ifindex)
			break;
	}
	return NULL;
}

static __always_inline int is_ours(__be16 port)
{
	int i;

	for (i = 0; i < PORTS; i++) {
		if (!ports[i])
			break;
		if (ports[i] == port)
			return 1;
	}
	return 0;
}

/* Where the IP header begins, and its EtherType: what stands in the frame counts, since a tag may be beside it. */
static __always_inline int network(struct __sk_buff *skb, __u32 link_len, __u32 *at, __u8 *version)
{
	__be16 type = 0;
	__u8 first;
	int i;

	*at = link_len;
	if (link_len) {
		__u32 type_at = ETH_HLEN - sizeof(type);

		for (i = 0; i <= TAGS; i++) {
			if (bpf_skb_load_bytes(skb, type_at, &type, sizeof(type)))
				return 0;
			if (type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_8021AD))
				break;
			type_at += 4;
		}
		*at = type_at + sizeof(type);
	}
	if (bpf_skb_load_bytes(skb, *at, &first, sizeof(first)))
		return 0;
	*version = first >> 4;
	if (!link_len)
		return *version == 4 || *version == 6;
	return (type == bpf_htons(ETH_P_IP) && *version == 4) || (type == bpf_htons(ETH_P_IPV6) && *version == 6);
}

static __always_inline void mark4(struct __sk_buff *skb, __u32 at, const struct iphdr *ip, struct relay_hop *hop)
{
	__u8 marked = ip->tos | ECN;
	__be16 old, new;

	if (!(ip->tos & ECN) || marked == ip->tos)
		return;
	old = bpf_htons(*(__u8 *)ip << 8 | ip->tos);
	new = bpf_htons(*(__u8 *)ip << 8 | marked);
	/* First what may fail. */
	if (bpf_skb_store_bytes(skb, at + offsetof(struct iphdr, tos), &marked, sizeof(marked), 0))
		return;
	bpf_l3_csum_replace(skb, at + offsetof(struct iphdr, check), old, new, sizeof(old));
	count(&hop->marked);
}

static __always_inline void mark6(struct __sk_buff *skb, __u32 at, const struct ipv6hdr *ip, struct relay_hop *hop)
{
	/* The traffic class straddles the first two octets: ECN is bits 4 and 5 of the second. */
	__u8 second = ip->flow_lbl[0], marked = second | ECN << 4;

	if (!(second & ECN << 4) || marked == second)
		return;
	if (!bpf_skb_store_bytes(skb, at + 1, &marked, sizeof(marked), BPF_F_RECOMPUTE_CSUM))
		count(&hop->marked);
}

/* The UDP header of an IPv6 packet, extension headers looked through; NOWHERE if there is none. */
static __always_inline __u32 behind_extensions(struct __sk_buff *skb, __u32 at, __u8 next, int *is_fragment)
{
	struct {
		__u8 next;
		__u8 len;
		__be16 offset;
	} head;
	int i;

	for (i = 0; i <= EXTENSIONS; i++) {
		if (next == IPPROTO_UDP)
			return at;
		if (next != HOP_BY_HOP && next != ROUTING && next != DESTINATION_OPTIONS && next != FRAGMENT)
			return NOWHERE;
		if (bpf_skb_load_bytes(skb, at, &head, sizeof(head)))
			return NOWHERE;
		if (next == FRAGMENT) {
			/* Its second octet is reserved. What follows is of the first fragment alone. */
			*is_fragment = 1;
			if (head.next != IPPROTO_UDP || (head.offset & bpf_htons(FRAGMENT_OFFSET6)))
				return NOWHERE;
			return at + 8;
		}
		next = head.next;
		at += 8 * (head.len + 1);
	}
	return NOWHERE;
}

/* Finds the datagrams of a packet; marks it on the way, if it is to be. False if it has none that may be stamped. */
static __always_inline int find(struct __sk_buff *skb, struct relay_hop *hop, struct found *found, int *is_fragment)
{
	union {
		struct iphdr v4;
		struct ipv6hdr v6;
	} ip;
	__u32 at;
	__u8 version;
	int marks;

	if (!network(skb, hop->link_len, &at, &version))
		return 0;
	marks = mark_above && hop->delay >= mark_above && bpf_ktime_get_ns() < hop->until;
	*is_fragment = 0;
	if (version == 4) {
		if (bpf_skb_load_bytes(skb, at, &ip.v4, sizeof(ip.v4)) || ip.v4.ihl < 5)
			return 0;
		if (marks)
			mark4(skb, at, &ip.v4, hop);
		if (ip.v4.protocol != IPPROTO_UDP || (ip.v4.frag_off & bpf_htons(FRAGMENT_OFFSET)))
			return 0;
		*is_fragment = !!(ip.v4.frag_off & bpf_htons(MORE_FRAGMENTS));
		found->udp = at + ip.v4.ihl * 4;
		found->end = at + bpf_ntohs(ip.v4.tot_len);
	} else {
		if (bpf_skb_load_bytes(skb, at, &ip.v6, sizeof(ip.v6)))
			return 0;
		if (marks)
			mark6(skb, at, &ip.v6, hop);
		found->udp = behind_extensions(skb, at + sizeof(ip.v6), ip.v6.nexthdr, is_fragment);
		found->end = at + sizeof(ip.v6) + bpf_ntohs(ip.v6.payload_len);
		if (found->udp == NOWHERE)
			return 0;
	}
	/* A packet that ends before it says so is nobody's. */
	return found->end <= skb->len && found->udp + sizeof(struct udphdr) <= found->end;
}

/* One datagram, whose payload begins at `at`. */
static __always_inline void stamp(struct __sk_buff *skb, struct relay_hop *hop, const struct found *found, __u32 at, int fresh)
{
	struct {
		__u8 first;
		__u8 more[DELAY_AT - 1];
		__be32 delay;
	} head;
	__be32 own = bpf_htonl(hop->delay);

	if (bpf_skb_load_bytes(skb, at, &head, sizeof(head)) || head.first >> 4 != VERSION) {
		count(&hop->other);
		return;
	}
	count(&hop->seen);
	if (!fresh) {
		count(&hop->stale);
		return;
	}
	if (bpf_ntohl(head.delay) >= bpf_ntohl(own))
		return;
	/* With a checksum of its own, the packet's sum is the same afterwards; without one, the kernel's has to follow (CHECKSUM_COMPLETE). */
	if (bpf_skb_store_bytes(skb, at + DELAY_AT, &own, sizeof(own), found->has_sum ? 0 : BPF_F_RECOMPUTE_CSUM))
		return;
	if (found->has_sum)
		bpf_l4_csum_replace(skb, found->udp + offsetof(struct udphdr, check), head.delay, own, BPF_F_MARK_MANGLED_0 | sizeof(own));
	count(&hop->stamped);
}

SEC("tcx/egress")
int relay_egress(struct __sk_buff *skb)
{
	struct relay_hop *hop = hop_of(skb->ifindex);
	struct found found = {};
	struct udphdr udp;
	__u32 len, step, at;
	int is_fragment, fresh, i;

	if (!hop || !find(skb, hop, &found, &is_fragment))
		return PASS;
	if (bpf_skb_load_bytes(skb, found.udp, &udp, sizeof(udp)) || (!is_ours(udp.source) && !is_ours(udp.dest)))
		return PASS;
	len = bpf_ntohs(udp.len);
	found.has_sum = udp.check;
	/* A whole datagram ends where its own length says, before any padding; of a first fragment all is payload. */
	if (!is_fragment) {
		if (len < sizeof(udp) || found.udp + len > found.end) {
			count(&hop->other);
			return PASS;
		}
		found.end = found.udp + len;
	}
	fresh = bpf_ktime_get_ns() < hop->until;
	at = found.udp + sizeof(udp);
	step = skb->gso_size;
	for (i = 0; i < SEGMENTS; i++) {
		if (at + NEEDED > found.end) {
			/* What is left of a train may be too short; so may be a datagram alone. */
			if (at < found.end || !i)
				count(&hop->other);
			break;
		}
		stamp(skb, hop, &found, at, fresh);
		if (!step)
			break;
		at += step;
	}
	return PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
