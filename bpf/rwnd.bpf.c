// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lowers the receive window that stations behind a wireless interface advertise, in passing ACKs.
 *
 * Attached to both sides of the interface: egress sees what goes to the stations, ingress what comes from them and is
 * rewritten there. Nearly every segment takes the short way (`short_way`): a few comparisons, two cache lines of its flow, no
 * call. What that cannot answer takes the long way, which knows everything; where both could answer they agree. Live, a
 * packet finds little of this code and state in the processor's first cache, so what counts is how many cache lines it
 * drags in, and each call into the kernel drags in many (docs/decisions/0006-flow-table-in-array-map.md).
 *
 * Policy stays in user space: it sets a target window in a flow, and as soon as its heartbeat is older than the limit it
 * set, everything passes untouched.
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
#define WINDOW_AT 14
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

/* The layout of RFC 7323, appendix A: two NOPs, then timestamps and nothing else. */
#define STAMPED (OPTION_NOP << 24 | OPTION_NOP << 16 | OPTION_TIMESTAMPS << 8 | 10)
#define STAMPED_LEN 32

volatile struct rwnd_control control __attribute__((aligned(64)));

/* Grows whenever a flow enters the table: user space looks for new ones only then. A line of its own. */
__u64 changes __attribute__((aligned(64)));

/* Its size is set at load. An array's elements are reached without a call. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct rwnd_set);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rwnd_counters);
} counters SEC(".maps");

/* For a law that wants to know of every segment. Its size is set at load: a page where none does. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

inline_ struct rwnd_counters *counts(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&counters, &zero);
}

inline_ __u64 exact_now(void)
{
	return control.tick_mask ? bpf_ktime_get_ns() : control.test_now_ns;
}

inline_ __u64 coarse_now(void)
{
	return control.now_ns;
}

/* Ticks of the kernel (1 to 10 ms), without a call; under test what user space says, without a branch. */
inline_ __u64 ticks(void)
{
	return (bpf_jiffies64() & control.tick_mask) + control.test_tick;
}

/* The table. */

#define MIX 0x9e3779b97f4a7c15ull

inline_ __u32 hash_v4(__u32 station, __u32 remote, __u32 ports)
{
	__u64 x = (((__u64)remote << 32 | station) ^ control.seed) * MIX;

	x = ((x ^ x >> 32) + ports) * MIX;
	return x >> 32;
}

/* Four addresses' worth: the words of both ends. */
inline_ __u32 hash_v6(const __be32 *station, const __be32 *remote, __u32 ports)
{
	__u64 x = control.seed;
	int i;

#pragma unroll
	for (i = 0; i < 4; i++) {
		x = (x ^ ((__u64)remote[i] << 32 | station[i])) * MIX;
		x ^= x >> 32;
	}
	x = (x + ports) * MIX;
	return x >> 32;
}

inline_ struct rwnd_set *set_of(__u32 hash)
{
	__u32 index = (hash >> 8) & control.set_mask;

	return bpf_map_lookup_elem(&flows, &index);
}

inline_ __u32 tag_of(__u32 hash)
{
	return hash | 1;
}

/* Both ports as they stand in the key: the station's, then the other end's. */
inline_ __u32 ports_of(const struct rwnd_key *key)
{
	return *(const __u32 *)&key->station_port;
}

inline_ int same_key(const struct rwnd_key *a, const struct rwnd_key *b)
{
	const __u64 *x = (const void *)a, *y = (const void *)b;

	return !((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]) | (x[4] ^ y[4]));
}

inline_ struct rwnd_entry *find_entry(struct rwnd_set *set, __u32 tag, const struct rwnd_key *key, __u32 tick)
{
	int i;

#pragma unroll
	for (i = 0; i < RWND_WAYS; i++) {
		if (set->tags[i] == tag && same_key(&set->ways[i].key, key)) {
			if (set->used[i] != tick)
				set->used[i] = tick;
			return &set->ways[i];
		}
	}
	return 0;
}

inline_ __u32 rank_of(const struct rwnd_set *set, int way)
{
	const struct rwnd_flow *f = &set->ways[way].flow;

	if (!set->tags[way])
		return 0;
	if (((f->down_seen | f->up_seen) & RWND_RST) || (f->down_seen & f->up_seen & RWND_FIN))
		return 1;
	return f->up_seen & RWND_STARTED ? 3 : 2;
}

/*
 * The way that a new flow takes, as `oal::rwnd::ways::choose`: a free one, else that of a connection that is over, else
 * that of a handshake that was not completed, else any; of equals the one that was silent longest. Only of those that
 * have rested: another processor may be about to write to the others. -1 if there is none.
 */
apart_ int choose_way(const struct rwnd_set *set, __u32 tick)
{
	__u32 best_rank = 4, best_age = 0;
	int i, best = -1;

	if (!set)
		return -1;
	for (i = 0; i < RWND_WAYS; i++) {
		__u32 age = tick - set->used[i], rank = rank_of(set, i);

		if (age + RWND_AHEAD < RWND_REST + RWND_AHEAD)
			continue;
		if (rank < best_rank || (rank == best_rank && age > best_age)) {
			best = i;
			best_rank = rank;
			best_age = age;
		}
	}
	return best;
}

/* Enters a flow; nothing if there is no place, or if another processor is at the same set: the flow is left alone. */
apart_ int open_flow(struct rwnd_set *set, __u32 tag, const struct rwnd_key *key, __u32 tick)
{
	struct rwnd_counters *count = counts();
	struct rwnd_entry *entry;
	__u32 way;

	if (!set || !key || !count)
		return 0;
	if (__sync_val_compare_and_swap(&set->lock, 0, 1)) {
		count->refused++;
		return 0;
	}
	/* The other direction's SYN may have been faster. */
	if (find_entry(set, tag, key, tick))
		goto out;
	way = choose_way(set, tick);
	/* The compiler knows what that can be, the verifier does not: hide the one's knowledge, show the other. */
	asm volatile("" : "+r"(way));
	if (way >= RWND_WAYS) {
		count->refused++;
		goto out;
	}
	entry = &set->ways[way];
	if (set->tags[way]) {
		count->evicted += rank_of(set, way) > 1;
		count->rewritten += entry->flow.rewritten;
		__sync_lock_test_and_set(&set->tags[way], 0);
	}
	__builtin_memset(&entry->flow, 0, sizeof(entry->flow));
	entry->key = *key;
	set->used[way] = tick;
	__sync_lock_test_and_set(&set->tags[way], tag);
	__sync_fetch_and_add(&changes, 1);
	count->opened++;
out:
	__sync_lock_test_and_set(&set->lock, 0);
	return 0;
}

/* The sum of 16-bit words, folded. */
inline_ __u16 fold(__u64 sum)
{
	sum = (sum >> 32) + (__u32)sum;
	sum = (sum >> 32) + (__u32)sum;
	sum = (sum >> 16) + (__u16)sum;
	sum = (sum >> 16) + (__u16)sum;
	return (sum >> 16) + (__u16)sum;
}

inline_ void complete_key(struct rwnd_key *key)
{
	__u64 sum = bpf_htons(IPPROTO_TCP);
	int i;

#pragma unroll
	for (i = 0; i < 8; i++)
		sum += key->ends[i];
	key->sum = fold(sum);
}

/* The short way. */

/* Both directions' seen bits as one word. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SEEN(down, up) ((__u32)(up) << 16 | (down))
#else
#define SEEN(down, up) ((__u32)(down) << 16 | (up))
#endif
#define SHORT_MASK (RWND_SYN | RWND_HANDS_OFF | RWND_RST)
#define SHORT_UP (RWND_STARTED | RWND_RECOVERING | RWND_VAL)

inline_ __u32 seen_of(const struct rwnd_flow *f)
{
	return *(const __u32 *)&f->down_seen;
}

/*
 * 1 if the segment has passed as the long way would have let it pass: in sequence, nothing but data and timestamps, a
 * window that does not move, no sample to begin or to end. Otherwise 0, and nothing has been changed.
 */
inline_ int short_downlink(struct rwnd_flow *f, struct tcphdr *tcp, __u32 payload)
{
	__u32 seq = bpf_ntohl(tcp->seq), ecr = bpf_ntohl(((__be32 *)(tcp + 1))[2]);

	if (unlikely(((seen_of(f) & SEEN(SHORT_MASK, SHORT_MASK)) ^ SEEN(RWND_SYN, RWND_SYN)) | (seq ^ f->max_end)))
		return 0;
	/* One octet may probe a closed window: the long way tells of it. */
	if (unlikely(payload <= 1))
		return !payload;
	if (unlikely(!f->sent_at && f->last_data != coarse_now()))
		return 0;
	if (unlikely(f->ack_at && !before(ecr, f->ack_val)))
		return 0;
	f->max_end = seq + payload;
	f->forwarded += payload;
	f->last_data = coarse_now();
	return 1;
}

/* As above; the window that goes on, or a negative number if this way cannot say. */
inline_ int short_uplink(struct rwnd_flow *f, struct tcphdr *tcp, __u32 payload)
{
	__u32 ack = bpf_ntohl(tcp->ack_seq), val = bpf_ntohl(((__be32 *)(tcp + 1))[1]), field = bpf_ntohs(tcp->window);
	__u32 newly = ack - f->highest_ack, limit = f->limit, shift = shift_of(f), edge = f->edge, held = edge - ack;
	__u32 allowed = field;
	int newer = before(f->last_val, val);

	if (unlikely((seen_of(f) & SEEN(SHORT_MASK, SHORT_MASK | SHORT_UP)) !=
		     SEEN(RWND_SYN, RWND_SYN | RWND_STARTED | RWND_VAL)))
		return -1;
	/* Old, beyond what was sent, or beyond every edge: the sign of any of the three. */
	if (unlikely((__s32)(newly | (f->max_end - ack) | held) < 0))
		return -1;
	if (unlikely(f->window != f->target || (f->window && !limit)))
		return -1;
	/* A duplicate, unless it is a window update or nothing is outstanding. */
	if (unlikely(!(newly | payload) && field == f->last_window && ack != f->max_end))
		return -1;
	if (unlikely(f->sent_at && !before(ack, f->sent_end)))
		return -1;
	if (newer) {
		if (unlikely(!f->ack_at))
			return -1;
		f->last_val = val;
	}
	if (limit) {
		held = in_units(held, shift);
		limit = limit > held ? limit : held;
		allowed = limit < field ? limit : field;
	}
	f->acked += newly;
	f->highest_ack = ack;
	f->last_window = field;
	ack += allowed << shift;
	if (before(edge, ack))
		f->edge = ack;
	return allowed;
}

/*
 * Writes another window. A checksum that was left to offload holds the sum of the pseudo-header and must stay: whatever
 * looks like that is left to the kernel, which knows. `check` is the key's sum with the segment's length.
 */
inline_ void write_window(struct __sk_buff *skb, struct tcphdr *tcp, __u32 tcp_at, __u32 allowed, __u32 pseudo)
{
	__u32 old = tcp->window, new = bpf_htons(allowed), check = tcp->check, sum;

	tcp->window = new;
	pseudo = (pseudo & 0xffff) + (pseudo >> 16);
	if (unlikely(check == pseudo || !check)) {
		bpf_l4_csum_replace(skb, tcp_at + CHECKSUM_AT, old, new, sizeof(__u16));
		return;
	}
	/* RFC 1624, equation 3. */
	sum = (check ^ 0xffff) + (old ^ 0xffff) + new;
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	tcp->check = ~sum;
}

/* Where an address stands in the packet, in words. */
struct ends {
	const __be32 *station;
	const __be32 *remote;
};

inline_ int is_of(const struct rwnd_key *key, const struct ends *ends, __u32 ports, int version)
{
	const __be32 *s = ends->station, *r = ends->remote, *k = key->ends;
	__u32 differ = (ports_of(key) ^ ports) | (key->version ^ version);

	if (version == 4)
		return !(differ | (k[0] ^ s[0]) | (k[1] ^ r[0]));
	return !(differ | (k[0] ^ s[0]) | (k[1] ^ s[1]) | (k[2] ^ s[2]) | (k[3] ^ s[3]) | (k[4] ^ r[0]) |
		 (k[5] ^ r[1]) | (k[6] ^ r[2]) | (k[7] ^ r[3]));
}

/*
 * A segment of `len` octets, of which the first 32 are there. Written out once a version, so that IPv4 does not step over
 * IPv6. 1 if the packet has been dealt with.
 */
inline_ int short_segment(struct __sk_buff *skb, int uplink, int version, __u32 tcp_at, const struct ends *ends,
			  struct tcphdr *tcp, __u32 len)
{
	__u32 hash, tag, tick, ports = *(__u32 *)tcp, *used;
	struct rwnd_entry *entry;
	struct rwnd_set *set;
	int i, allowed;
	__u64 now;

	/* A header of 32 octets, an ACK and none of SYN, FIN, RST; then nothing but timestamps. */
	if (unlikely((((__be16 *)tcp)[6] ^ bpf_htons(0x8010)) & bpf_htons(0xf017)) ||
	    unlikely(*(__be32 *)(tcp + 1) != bpf_htonl(STAMPED)))
		return 0;
	if (!uplink)
		ports = ports << 16 | ports >> 16;
	hash = version == 4 ? hash_v4(*ends->station, *ends->remote, ports) :
			      hash_v6(ends->station, ends->remote, ports);
	set = set_of(hash);
	if (unlikely(!set))
		return 0;
	tag = tag_of(hash);
	now = ticks();
	tick = now;
	entry = &set->ways[0];
	used = &set->used[0];
	if (unlikely(set->tags[0] != tag)) {
#pragma unroll
		for (i = 1; i < RWND_WAYS; i++) {
			if (set->tags[i] == tag) {
				entry = &set->ways[i];
				used = &set->used[i];
				goto tagged;
			}
		}
		/* A flow that is not known, and no SYN to make it so. */
		return 1;
	}
tagged:
	if (unlikely(!is_of(&entry->key, ends, ports, version)))
		return 0;
	if (unlikely(*used != tick))
		*used = tick;
	if (!uplink)
		return short_downlink(&entry->flow, tcp, len - STAMPED_LEN);
	if (unlikely(now > control.deadline))
		return 0;
	allowed = short_uplink(&entry->flow, tcp, len - STAMPED_LEN);
	if (unlikely(allowed < 0))
		return 0;
	if (allowed != bpf_ntohs(tcp->window)) {
		entry->flow.rewritten++;
		write_window(skb, tcp, tcp_at, allowed, entry->key.sum + bpf_htons(len));
	}
	return 1;
}

/* 1 if the packet has been dealt with. */
inline_ int short_way(struct __sk_buff *skb, int uplink, __u32 link_len)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end, *tcp;
	__u32 room = skb->len - link_len, len;
	__be16 type = skb->protocol;
	struct ends ends;

	if (link_len) {
		if (unlikely(data + link_len > end))
			return 0;
		type = *(__be16 *)(data + 2 * ETH_ALEN); /* the struct is a packed one, which is read by octets */
	}
	data += link_len;
	if (likely(type == bpf_htons(ETH_P_IP))) {
		struct iphdr *ip = data;

		tcp = ip + 1;
		if (unlikely(tcp + STAMPED_LEN > end))
			return 0;
		/* Version and length of the header, fragments, protocol: all as usual or none of our business. */
		if (unlikely((*(__u8 *)ip ^ 0x45) | (ip->frag_off & bpf_htons(IP_FRAGMENT)) |
			     (ip->protocol ^ IPPROTO_TCP)))
			return ip->protocol != IPPROTO_TCP;
		len = bpf_ntohs(ip->tot_len);
		if (unlikely(len > room || len < sizeof(*ip) + STAMPED_LEN))
			return 0;
		ends.station = uplink ? &ip->saddr : &ip->daddr;
		ends.remote = uplink ? &ip->daddr : &ip->saddr;
		return short_segment(skb, uplink, 4, link_len + sizeof(*ip), &ends, tcp, len - sizeof(*ip));
	}
	if (type == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = data;

		tcp = ip + 1;
		if (unlikely(tcp + STAMPED_LEN > end))
			return 0;
		if (unlikely(((*(__u8 *)ip >> 4) ^ 6) | (ip->nexthdr ^ IPPROTO_TCP)))
			return ip->nexthdr == IPPROTO_UDP;
		len = bpf_ntohs(ip->payload_len);
		if (unlikely(len + sizeof(*ip) > room || len < STAMPED_LEN))
			return 0;
		ends.station = uplink ? ip->saddr.in6_u.u6_addr32 : ip->daddr.in6_u.u6_addr32;
		ends.remote = uplink ? ip->daddr.in6_u.u6_addr32 : ip->saddr.in6_u.u6_addr32;
		return short_segment(skb, uplink, 6, link_len + sizeof(*ip), &ends, tcp, len);
	}
	return 0;
}

/* The long way. */

/* Where the TCP segment stands in the packet. */
struct place {
	__u32 tcp_at;
	__u32 len; /* of the segment, by the IP header */
};

/*
 * Finds the segment and fills the addresses of the key. 0 for packets that are none of our business, malformed ones
 * included: the stack is a better judge of those.
 */
inline_ int find(struct __sk_buff *skb, struct place *place, struct rwnd_key *key, int uplink, __u32 link_len)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
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
		key->ends[uplink ? 0 : 1] = ip->saddr;
		key->ends[uplink ? 1 : 0] = ip->daddr;
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
		__builtin_memcpy(&key->ends[uplink ? 0 : 4], &ip->saddr, sizeof(ip->saddr));
		__builtin_memcpy(&key->ends[uplink ? 4 : 0], &ip->daddr, sizeof(ip->daddr));
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
			s->sacks = (size - 2) / 8;
			s->sack_at = p + 2;
		} else if (kind == OPTION_MD5 || kind == OPTION_AO || kind == OPTION_MPTCP) {
			s->hands_off = 1;
		}
		p = (p + size) & 63;
	}
	return 0;
}

/* The source of the frame that the recorded SYN came in. */
inline_ void note_hardware(struct __sk_buff *skb, struct rwnd_flow *f, const struct segment *s)
{
	void *data = (void *)(long)skb->data;

	if (!(s->flags & SYN) || !(f->up_seen & RWND_SYN) || f->up_isn != s->seq || has_hardware(f) ||
	    data + ETH_HLEN > (void *)(long)skb->data_end)
		return;
	__builtin_memcpy(f->hardware, data + ETH_ALEN, sizeof(f->hardware));
}

/* Whether a segment is one of which the flow's numbers would not tell. What they tell of is read there. */
inline_ int is_news(const struct rwnd_flow *f, const struct segment *s, int uplink)
{
	if (likely(!control.events) || !is_manageable(f) || (s->flags & (SYN | RST)))
		return 0;
	if (uplink)
		return s->has_sack;
	if (!s->payload_len)
		return before(f->max_end, s->seq);
	return s->seq != f->max_end || s->payload_len == 1;
}

/* Before the flow takes the segment in: whoever has read the flow and then the ring knows of all that moved the numbers. */
apart_ int tell(struct __sk_buff *skb, const struct rwnd_entry *entry, const struct segment *s, __u32 options_at,
		__u32 uplink)
{
	struct rwnd_counters *count = counts();
	struct rwnd_event *event;
	__u32 i;

	if (!entry || !s || !count)
		return 0;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		count->missed++;
		return 0;
	}
	event->key = entry->key;
	event->born = entry->flow.born;
	event->at = exact_now();
	event->max_end = entry->flow.max_end;
	event->highest_ack = entry->flow.highest_ack;
	event->seq = s->seq;
	event->len = s->payload_len;
	event->ack = s->ack;
	event->count = skb->gso_segs;
	event->uplink = !!uplink;
	event->sacks = 0;
	for (i = 0; i < RWND_SACKS; i++) {
		event->sack[2 * i] = 0;
		event->sack[2 * i + 1] = 0;
		if (i < s->sacks && !bpf_skb_load_bytes(skb, options_at + s->sack_at + 8 * i, &event->sack[2 * i], 8))
			event->sacks++;
	}
	/* It is read at every interval: nobody need be woken. A full barrier: the numbers follow. */
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

inline_ int long_way(struct __sk_buff *skb, int uplink, __u32 link_len)
{
	struct rwnd_key key = {};
	struct segment s = {};
	struct rwnd_set *set;
	struct rwnd_entry *entry;
	struct rwnd_flow *flow;
	struct tcphdr *tcp;
	struct place place;
	struct rwnd_counters *count;
	__u32 header_len, attended, hash, tick;
	__u16 window;

	if (!find(skb, &place, &key, uplink, link_len))
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
	complete_key(&key);
	s.flags = ((__u8 *)tcp)[13];
	hash = key.version == 4 ? hash_v4(key.ends[0], key.ends[1], ports_of(&key)) :
				  hash_v6(key.ends, key.ends + 4, ports_of(&key));
	set = set_of(hash);
	count = counts();
	if (!set || !count)
		return PASS;
	tick = ticks();
	entry = find_entry(set, tag_of(hash), &key, tick);
	if (!entry && (s.flags & (SYN | ACK | RST)) != SYN)
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

		if (likely(header_len == STAMPED_LEN && (void *)(o + 3) <= (void *)(long)skb->data_end &&
			   o[0] == bpf_htonl(STAMPED))) {
			s.has_timestamps = 1;
			s.val = bpf_ntohl(o[1]);
			s.ecr = bpf_ntohl(o[2]);
		} else if (read_options(skb, &s, place.tcp_at + TCP_MIN_LEN, header_len - TCP_MIN_LEN)) {
			goto malformed;
		}
	}
	if (unlikely(!entry)) {
		open_flow(set, tag_of(hash), &key, tick);
		entry = find_entry(set, tag_of(hash), &key, tick);
		if (!entry)
			return PASS;
	}
	flow = &entry->flow;
	count->apart++;
	if (unlikely(is_news(flow, &s, uplink)))
		tell(skb, entry, &s, place.tcp_at + TCP_MIN_LEN, uplink);
	if (!uplink) {
		on_downlink(flow, &s);
		return PASS;
	}
	attended = ticks() <= control.deadline;
	if (unlikely(!attended))
		count->unattended++;
	window = on_uplink(flow, &s, attended);
	if (link_len)
		note_hardware(skb, flow, &s);
	if (window != s.window) {
		__be16 old = bpf_htons(s.window), new = bpf_htons(window);

		/* The helpers know whether the checksum is complete or left to offload, where it must stay as it is. */
		bpf_l4_csum_replace(skb, place.tcp_at + CHECKSUM_AT, old, new, sizeof(new));
		bpf_skb_store_bytes(skb, place.tcp_at + WINDOW_AT, &new, sizeof(new), 0);
	}
	return PASS;
malformed:
	count->malformed++;
	return PASS;
}

/* One a direction and kind of link, so that no packet asks which. */

apart_ int long_uplink(struct __sk_buff *skb)
{
	return long_way(skb, 1, ETH_HLEN);
}

apart_ int long_downlink(struct __sk_buff *skb)
{
	return long_way(skb, 0, ETH_HLEN);
}

apart_ int long_uplink_bare(struct __sk_buff *skb)
{
	return long_way(skb, 1, 0);
}

apart_ int long_downlink_bare(struct __sk_buff *skb)
{
	return long_way(skb, 0, 0);
}

/* For devices with an Ethernet header. */
SEC("tcx/ingress")
int rwnd_uplink(struct __sk_buff *skb)
{
	return likely(short_way(skb, 1, ETH_HLEN)) ? PASS : long_uplink(skb);
}

SEC("tcx/egress")
int rwnd_downlink(struct __sk_buff *skb)
{
	return likely(short_way(skb, 0, ETH_HLEN)) ? PASS : long_downlink(skb);
}

/* For devices with packets that begin with their IP header. */
SEC("tcx/ingress")
int rwnd_uplink_ip(struct __sk_buff *skb)
{
	return likely(short_way(skb, 1, 0)) ? PASS : long_uplink_bare(skb);
}

SEC("tcx/egress")
int rwnd_downlink_ip(struct __sk_buff *skb)
{
	return likely(short_way(skb, 0, 0)) ? PASS : long_downlink_bare(skb);
}

/* Run by user space 250 times a second. The tick, by which user space tells how long a flow has been silent. */
SEC("syscall")
int rwnd_heartbeat(struct rwnd_beat *beat)
{
	__u64 tick = ticks();

	control.now_ns = beat->now_ns;
	control.deadline = tick + control.age_limit;
	return (__u32)tick;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
