// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lowers the receive window that stations behind a wireless interface advertise, in passing ACKs.
 *
 * Attached to both sides of the interface: egress sees what goes to the stations, ingress what comes from them and is
 * rewritten there. What is not a whole TCP segment of a flow that was seen from its first SYN leaves after a few
 * comparisons and, for TCP, one map lookup. Policy stays in user space: it orders a target window for a flow, and as
 * soon as its heartbeat is older than the limit it set, everything passes untouched.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "rwnd_flow.h"

/* Let other programs on the hook, and the stack, go on with the packet. */
#define PASS (-1)

/* As in crates/wire: tags and extension headers that are looked through. */
#define MAX_TAGS 2
#define MAX_EXTENSIONS 4

#define ETH_P_QINQ 0x88a8
#define IP_FRAGMENT 0x3fff
#define TCP_MIN_LEN 20
#define TCP_MAX_LEN 60
#define CHECKSUM_AT 16

#define OPTION_END 0
#define OPTION_NOP 1
#define OPTION_MSS 2
#define OPTION_SCALE 3
#define OPTION_SACK 5
#define OPTION_TIMESTAMPS 8
#define OPTION_MD5 19
#define OPTION_AO 29
#define OPTION_MPTCP 30

/* Octets of link-layer header: 14, or 0 on devices that have none. Set at load from the device's ARPHRD type. */
const volatile __u32 link_len = ETH_HLEN;
/* True only under test: time is what control.test_now_ns says. */
const volatile _Bool test_clock = 0;

volatile struct rwnd_control control;

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct rwnd_key);
	__type(value, struct rwnd_flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rwnd_counters);
} counters SEC(".maps");

static const struct rwnd_flow nothing;

inline_ struct rwnd_counters *counts(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&counters, &zero);
}

inline_ __u64 exact_now(void)
{
	return test_clock ? control.test_now_ns : bpf_ktime_get_ns();
}

inline_ __u64 coarse_now(void)
{
	return test_clock ? control.test_now_ns : bpf_ktime_get_coarse_ns();
}

/* Where the TCP segment stands in the packet. */
struct place {
	__u32 tcp_at;
	__u32 len; /* of the segment, by the IP header */
};

/* An address into its field of the key: 16 or 4 octets, in words. */
inline_ void copy16(__u8 *to, const void *from)
{
	__builtin_memcpy(to, from, 16);
}

/*
 * Finds the segment and fills the addresses of the key. 0 for packets that are none of our business, malformed ones
 * included: the stack is a better judge of those.
 */
inline_ int find(struct __sk_buff *skb, struct place *place, struct rwnd_key *key, int uplink)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u8 *source = uplink ? key->station : key->remote;
	__u8 *destination = uplink ? key->remote : key->station;
	__u32 at = link_len;
	__be16 type = skb->protocol;

	if (link_len) {
		struct ethhdr *eth = data;
		int tags;

		if ((void *)(eth + 1) > end)
			return 0;
		type = eth->h_proto;
		for (tags = 0; tags < MAX_TAGS; tags++) {
			__be16 *inner = data + at + 2;

			if (likely(type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_QINQ)))
				break;
			if ((void *)(inner + 1) > end)
				return 0;
			type = *inner;
			at += 4;
		}
	}
	if (type == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = data + at;
		__u32 total, header;

		if ((void *)(ip + 1) > end || ip->protocol != IPPROTO_TCP || ip->version != 4)
			return 0;
		header = ip->ihl * 4;
		total = bpf_ntohs(ip->tot_len);
		if (header < sizeof(*ip) || total < header || total > skb->len - at ||
		    (ip->frag_off & bpf_htons(IP_FRAGMENT)))
			return 0;
		__builtin_memcpy(source, &ip->saddr, 4);
		__builtin_memcpy(destination, &ip->daddr, 4);
		key->version = 4;
		place->tcp_at = at + header;
		place->len = total - header;
		return 1;
	}
	if (type == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = data + at;
		__u32 total, header = sizeof(*ip);
		__u8 next;
		int i;

		if ((void *)(ip + 1) > end || ip->version != 6)
			return 0;
		next = ip->nexthdr;
		total = sizeof(*ip) + bpf_ntohs(ip->payload_len);
		if (total > skb->len - at)
			return 0;
		copy16(source, &ip->saddr);
		copy16(destination, &ip->daddr);
		key->version = 6;
		for (i = 0; i < MAX_EXTENSIONS; i++) {
			__u8 extension[2];

			if (likely(next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS))
				break;
			if (bpf_skb_load_bytes(skb, at + header, extension, sizeof(extension)))
				return 0;
			next = extension[0];
			header += (extension[1] + 1) * 8;
		}
		if (next != IPPROTO_TCP || header > total)
			return 0;
		place->tcp_at = at + header;
		place->len = total - header;
		return 1;
	}
	return 0;
}

/* 0, or -1 if an option's length leaves the header. */
apart_ int read_options(struct __sk_buff *skb, struct segment *s, __u32 at, __u32 len)
{
	__u8 o[64] = {};
	__u32 i, p = 0;

	if (!s)
		return -1;
	len &= 63;
	if (!len || len > TCP_MAX_LEN - TCP_MIN_LEN || bpf_skb_load_bytes(skb, at, o, len))
		return -1;
	for (i = 0; i < TCP_MAX_LEN - TCP_MIN_LEN; i++) {
		__u32 kind, size;

		if (p >= len)
			break;
		kind = o[p & 63];
		if (kind == OPTION_END)
			break;
		if (kind == OPTION_NOP) {
			p++;
			continue;
		}
		if (p + 1 >= len)
			return -1;
		size = o[(p + 1) & 63];
		if (size < 2 || p + size > len)
			return -1;
		if (kind == OPTION_MSS && size == 4) {
			s->mss = (__u16)o[(p + 2) & 63] << 8 | o[(p + 3) & 63];
		} else if (kind == OPTION_SCALE && size == 3) {
			s->has_scale = 1;
			s->scale = o[(p + 2) & 63];
		} else if (kind == OPTION_TIMESTAMPS && size == 10) {
			s->has_timestamps = 1;
			s->val = (__u32)o[(p + 2) & 63] << 24 | (__u32)o[(p + 3) & 63] << 16 |
				 (__u32)o[(p + 4) & 63] << 8 | o[(p + 5) & 63];
			s->ecr = (__u32)o[(p + 6) & 63] << 24 | (__u32)o[(p + 7) & 63] << 16 |
				 (__u32)o[(p + 8) & 63] << 8 | o[(p + 9) & 63];
		} else if (kind == OPTION_SACK && size > 2 && (size - 2) % 8 == 0) {
			s->has_sack = 1;
		} else if (kind == OPTION_MD5 || kind == OPTION_AO || kind == OPTION_MPTCP) {
			s->hands_off = 1;
		}
		p = (p + size) & 63;
	}
	return 0;
}

inline_ struct rwnd_flow *open_flow(const struct rwnd_key *key)
{
	bpf_map_update_elem(&flows, key, &nothing, BPF_NOEXIST);
	return bpf_map_lookup_elem(&flows, key);
}

inline_ int handle(struct __sk_buff *skb, int uplink)
{
	struct rwnd_key key = {};
	struct segment s = {};
	struct rwnd_flow *flow;
	struct tcphdr *tcp;
	struct place place;
	struct rwnd_counters *count;
	__u32 header_len, attended;
	__u16 window;

	if (!find(skb, &place, &key, uplink))
		return PASS;
	tcp = (void *)(long)skb->data + (place.tcp_at & 0xffff);
	if (unlikely((void *)(tcp + 1) > (void *)(long)skb->data_end)) {
		/* Headers beyond the linear part: rare, and worth a copy only for whole headers. */
		if (bpf_skb_pull_data(skb, place.tcp_at + sizeof(*tcp)))
			return PASS;
		tcp = (void *)(long)skb->data + (place.tcp_at & 0xffff);
		if ((void *)(tcp + 1) > (void *)(long)skb->data_end)
			return PASS;
	}
	key.station_port = uplink ? tcp->source : tcp->dest;
	key.remote_port = uplink ? tcp->dest : tcp->source;
	s.flags = ((__u8 *)tcp)[13];
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow && (s.flags & (SYN | ACK | RST)) != SYN)
		return PASS;
	count = counts();
	if (!count)
		return PASS;
	header_len = tcp->doff * 4;
	if (unlikely(header_len < TCP_MIN_LEN || header_len > place.len))
		goto malformed;
	s.seq = bpf_ntohl(tcp->seq);
	s.ack = bpf_ntohl(tcp->ack_seq);
	s.window = bpf_ntohs(tcp->window);
	s.payload_len = place.len - header_len;
	if (header_len > TCP_MIN_LEN) {
		__be32 *o = (void *)(tcp + 1);

		/* Nearly every segment has timestamps in the layout of RFC 7323, appendix A, and nothing else. */
		if (likely(header_len == 32 && (void *)(o + 3) <= (void *)(long)skb->data_end &&
			   o[0] == bpf_htonl(OPTION_NOP << 24 | OPTION_NOP << 16 | OPTION_TIMESTAMPS << 8 | 10))) {
			s.has_timestamps = 1;
			s.val = bpf_ntohl(o[1]);
			s.ecr = bpf_ntohl(o[2]);
		} else if (read_options(skb, &s, place.tcp_at + TCP_MIN_LEN, header_len - TCP_MIN_LEN)) {
			goto malformed;
		}
	}
	if (unlikely(!flow)) {
		flow = open_flow(&key);
		count->opened++;
	}
	if (!flow)
		return PASS;
	count->segments++;
	if (!uplink) {
		on_downlink(flow, &s);
		return PASS;
	}
	attended = coarse_now() <= control.heartbeat_ns + control.age_limit_ns;
	if (unlikely(!attended))
		count->unattended++;
	window = on_uplink(flow, &s, attended);
	if (window != s.window) {
		__be16 old = bpf_htons(s.window), new = bpf_htons(window);

		/* The helper knows whether the checksum is complete or left to offload, where it must stay as it is. */
		tcp->window = new;
		bpf_l4_csum_replace(skb, place.tcp_at + CHECKSUM_AT, old, new, sizeof(new));
		count->rewritten++;
	}
	return PASS;
malformed:
	count->malformed++;
	return PASS;
}

SEC("tcx/ingress")
int rwnd_uplink(struct __sk_buff *skb)
{
	return handle(skb, 1);
}

SEC("tcx/egress")
int rwnd_downlink(struct __sk_buff *skb)
{
	return handle(skb, 0);
}

/*
 * Run by user space for each new target. A plain map update would write a whole flow back and undo what packets have
 * changed meanwhile. 1 if the flow is there, 0 if it has gone.
 */
SEC("syscall")
int rwnd_set_target(struct rwnd_order *order)
{
	struct rwnd_key key = order->key;
	struct rwnd_flow *flow = bpf_map_lookup_elem(&flows, &key);

	if (!flow || flow->born != order->born)
		return 0;
	flow->target = order->target;
	return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
