/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The state machine of one flow: `crates/laws/src/oal/rwnd.rs` and the files under `rwnd/`, function by function, by the
 * same names. The reasons for what is done stand there; the parity test holds the two together, state and bytes.
 *
 * The two directions of a flow may run on two processors at once, each direction on one: fields are written by one
 * direction only, except for the two timers (sent_at, ack_at): their words are written whole. Packets of one direction
 * on two processors at once (a flow that is just being steered to another) may lose each other's updates: counts,
 * samples, and an edge by as much as the two differ, which a sender has to survive anyway (RFC 9293, section 3.8.6).
 */
#ifndef LASTHOP_RWND_FLOW_H
#define LASTHOP_RWND_FLOW_H

#include "rwnd.h"

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10

#define inline_ static inline __attribute__((always_inline))
/*
 * Out of line: rare, so that common packets need not drag its instructions along, and global, so that the verifier
 * looks at it once and not once for every way that leads there. Its pointers must be checked, to please the verifier.
 */
#define apart_ __attribute__((noinline))
/* Common packets run straight through: what is rare goes behind them, and does not push them out of the cache. */
#ifndef likely /* newer libbpf headers have them */
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif

/* A segment, fields in host order. */
struct segment {
	__u32 seq;
	__u32 ack;
	__u32 payload_len;
	__u32 val; /* timestamps, if has_timestamps */
	__u32 ecr;
	__u16 window;
	__u16 mss; /* 0 = no option */
	__u8 flags;
	__u8 scale;
	__u8 has_scale;
	__u8 has_timestamps;
	__u8 has_sack;
	__u8 hands_off;
	__u8 sacks; /* SACK blocks */
	__u8 sack_at; /* where they begin, from the first option on */
};

/*
 * Time. To read the exact clock costs about as much as everything else done for a packet, and only samples of round trips
 * need it, one a round trip; the coarse one is what user space last said, an interval of its heartbeats behind at most.
 */
inline_ __u64 exact_now(void);
inline_ __u64 coarse_now(void);

/* Both processors read these words for every segment: they are written only when they change. */
inline_ void put(__u16 *word, __u16 value)
{
	if (*word != value)
		*word = value;
}

inline_ int before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

inline_ __u32 sequence_len(const struct segment *s)
{
	return s->payload_len + !!(s->flags & SYN) + !!(s->flags & FIN);
}

inline_ int is_manageable(const struct rwnd_flow *f)
{
	return (f->down_seen & f->up_seen & RWND_SYN) && !((f->down_seen | f->up_seen) & (RWND_HANDS_OFF | RWND_RST));
}

inline_ __u32 shift_of(const struct rwnd_flow *f)
{
	return f->shift;
}

inline_ void learn_shift(struct rwnd_flow *f)
{
	__u8 up = f->up_scale < MAX_SHIFT ? f->up_scale : MAX_SHIFT;

	f->shift = f->down_seen & f->up_seen & RWND_SCALE ? up : 0;
}

inline_ __u32 mss_of(const struct rwnd_flow *f)
{
	__u32 down = f->down_mss ? f->down_mss : DEFAULT_MSS;
	__u32 up = f->up_mss ? f->up_mss : DEFAULT_MSS;
	__u32 mss = down < up ? down : up;
	__u32 stamps = f->down_seen & f->up_seen & RWND_TIMESTAMPS ? TIMESTAMPS_LEN : 0;

	mss = mss > stamps ? mss - stamps : 0;
	return mss > MIN_MSS ? mss : MIN_MSS;
}

inline_ __u32 in_units(__u32 octets, __u32 shift)
{
	return (octets + ((1u << shift) - 1)) >> shift;
}

inline_ void half_add(struct rwnd_half *half, __u64 since)
{
	__u64 now = exact_now();
	__u64 sample = now > since ? now - since : 0;
	__u32 ns = sample > 0xffffffff ? 0xffffffff : (__u32)sample;
	__u32 epoch = (__u32)(now >> EPOCH_SHIFT) + 1;
	__u32 index = epoch % RWND_BINS;
	struct rwnd_bin *bin;

	/* The compiler knows that this is in bounds, the verifier does not: hide the one's knowledge, show the other. */
	asm volatile("" : "+r"(index));
	if (index >= RWND_BINS)
		return;
	bin = &half->bins[index];
	if (bin->epoch != epoch || ns < bin->min_ns) {
		bin->epoch = epoch;
		bin->min_ns = ns;
	}
}

inline_ void begin_wired_sample(struct rwnd_flow *f, __u32 val)
{
	if ((f->up_seen & RWND_VAL) && !before(f->last_val, val))
		return;
	put(&f->up_seen, f->up_seen | RWND_VAL);
	f->last_val = val;
	if (unlikely(!f->ack_at)) {
		f->ack_val = val;
		f->ack_at = exact_now();
	}
}

inline_ void end_wired_sample(struct rwnd_flow *f, __u32 ecr)
{
	if (likely(!f->ack_at || before(ecr, f->ack_val)))
		return;
	if (ecr == f->ack_val)
		half_add(&f->wired, f->ack_at);
	f->ack_at = 0;
}

inline_ void end_handshake_sample(struct rwnd_flow *f, const struct segment *s)
{
	__u64 now, sample;

	if (likely(!f->asked_at || !(s->flags & ACK) || s->ack != f->up_isn + 1))
		return;
	now = exact_now();
	sample = now > f->asked_at ? now - f->asked_at : 1;
	f->handshake = sample > 0xffffffff ? 0xffffffff : (__u32)sample;
	f->asked_at = 0;
}

inline_ void end_wireless_sample(struct rwnd_flow *f, __u32 ack)
{
	if (unlikely(f->sent_at && !before(ack, f->sent_end))) {
		half_add(&f->wireless, f->sent_at);
		f->sent_at = 0;
	}
}

/* The two SYNs. */

enum syn { SYN_RECORD, SYN_REPEAT, SYN_RESTART, SYN_IGNORE };

inline_ enum syn classify(const struct segment *s, __u32 own_seen, __u32 own_isn, __u32 other_seen, __u32 other_isn,
			  int started)
{
	if ((own_seen & RWND_SYN) && own_isn == s->seq)
		return SYN_REPEAT;
	if (s->flags & ACK)
		return (other_seen & RWND_SYN) && s->ack == other_isn + 1 && !started ? SYN_RECORD : SYN_IGNORE;
	return (own_seen & RWND_SYN) || started ? SYN_RESTART : SYN_RECORD;
}

inline_ __u16 options_seen(__u16 seen, const struct segment *s)
{
	seen &= ~(RWND_SCALE | RWND_TIMESTAMPS);
	seen |= RWND_SYN;
	if (s->has_scale)
		seen |= RWND_SCALE;
	if (s->has_timestamps)
		seen |= RWND_TIMESTAMPS;
	if (s->hands_off)
		seen |= RWND_HANDS_OFF;
	return seen;
}

inline_ void note_syn_edge(struct rwnd_flow *f)
{
	__u32 edge = f->down_isn + 1 + f->syn_window;

	if (before(f->edge, edge))
		f->edge = edge;
}

inline_ void complete(struct rwnd_flow *f)
{
	if (!(f->down_seen & f->up_seen & RWND_SYN))
		return;
	f->highest_ack = f->down_isn + 1;
	f->edge = f->highest_ack;
	note_syn_edge(f);
}

inline_ void learn_downlink(struct rwnd_flow *f, const struct segment *s)
{
	f->down_seen = options_seen(f->down_seen, s);
	f->down_scale = s->has_scale ? s->scale : 0;
	f->down_mss = s->mss;
	learn_shift(f);
}

inline_ void learn_uplink(struct rwnd_flow *f, const struct segment *s)
{
	f->up_seen = options_seen(f->up_seen, s);
	f->up_scale = s->has_scale ? s->scale : 0;
	f->up_mss = s->mss;
	f->syn_window = s->window;
	learn_shift(f);
	if (s->has_timestamps)
		begin_wired_sample(f, s->val);
	if (f->down_seen & RWND_SYN)
		note_syn_edge(f);
}

inline_ int has_hardware(const struct rwnd_flow *f)
{
	int i, any = 0;

#pragma unroll
	for (i = 0; i < 6; i++)
		any |= f->hardware[i];
	return any;
}

/* Another connection; what the entry has counted stays counted. */
inline_ void restart(struct rwnd_flow *f)
{
	__u32 rewritten = f->rewritten;

	__builtin_memset(f, 0, sizeof(*f));
	f->rewritten = rewritten;
}

apart_ int on_downlink_syn(struct rwnd_flow *f, const struct segment *s)
{
	int started;
	enum syn what;

	if (!f || !s)
		return 0;
	started = !!(f->up_seen & RWND_STARTED);
	what = classify(s, f->down_seen, f->down_isn, f->up_seen, f->up_isn, started);

	if (what == SYN_IGNORE)
		return 0;
	if (what == SYN_REPEAT) {
		f->sent_at = 0;
		if (!started)
			learn_downlink(f, s);
		return 0;
	}
	if (what == SYN_RESTART)
		restart(f);
	if (!f->born)
		f->born = exact_now();
	f->down_isn = s->seq;
	f->max_end = s->seq + sequence_len(s);
	f->sent_end = f->max_end;
	f->sent_at = exact_now();
	learn_downlink(f, s);
	end_handshake_sample(f, s);
	if (s->has_timestamps && (s->flags & ACK))
		end_wired_sample(f, s->ecr);
	complete(f);
	return 0;
}

apart_ int on_uplink_syn(struct rwnd_flow *f, const struct segment *s)
{
	int started;
	enum syn what;

	if (!f || !s)
		return 0;
	started = !!(f->up_seen & RWND_STARTED);
	what = classify(s, f->up_seen, f->up_isn, f->down_seen, f->down_isn, started);

	if (what == SYN_IGNORE)
		return 0;
	if (what == SYN_REPEAT) {
		f->asked_at = 0;
		if (!started)
			learn_uplink(f, s);
		return 0;
	}
	if (what == SYN_RESTART)
		restart(f);
	if (!f->born)
		f->born = exact_now();
	f->up_isn = s->seq;
	f->asked_at = exact_now();
	learn_uplink(f, s);
	if (s->flags & ACK)
		end_wireless_sample(f, s->ack);
	complete(f);
	return 0;
}

/* Everything after them. */

inline_ void note_data(struct rwnd_flow *f, const struct segment *s)
{
	if (unlikely(before(s->seq, f->max_end))) {
		f->sent_at = 0;
	} else if (unlikely(!f->sent_at && f->last_data != coarse_now())) {
		f->sent_end = s->seq + sequence_len(s);
		f->sent_at = exact_now();
	}
	f->forwarded += s->payload_len;
	if (s->payload_len)
		f->last_data = coarse_now();
	if (s->has_timestamps)
		end_wired_sample(f, s->ecr);
}

inline_ void on_downlink(struct rwnd_flow *f, const struct segment *s)
{
	__u32 end;

	if (unlikely(s->flags & RST)) {
		f->down_seen |= RWND_RST;
		return;
	}
	if (unlikely(s->flags & SYN)) {
		on_downlink_syn(f, s);
		return;
	}
	if (unlikely(s->hands_off))
		f->down_seen |= RWND_HANDS_OFF;
	if (unlikely(!is_manageable(f)))
		return;
	if (unlikely(s->flags & FIN))
		f->down_seen |= RWND_FIN;
	if (!s->has_timestamps)
		end_handshake_sample(f, s);
	if (sequence_len(s))
		note_data(f, s);
	end = s->seq + sequence_len(s);
	if (before(f->max_end, end))
		f->max_end = end;
}

inline_ void note_recovery(struct rwnd_flow *f, const struct segment *s, int is_new)
{
	int duplicate =
		!is_new && !sequence_len(s) && s->window == f->last_window && f->max_end != f->highest_ack;

	if (unlikely(s->has_sack || duplicate))
		put(&f->up_seen, f->up_seen | RWND_RECOVERING);
	else if (is_new)
		put(&f->up_seen, f->up_seen & ~RWND_RECOVERING);
}

inline_ void step_window(struct rwnd_flow *f, __u32 newly_acked, __u32 own, __u32 mss)
{
	int frozen = !!(f->up_seen & RWND_RECOVERING);
	__u32 target = f->target; /* user space may change it at any moment */
	__u32 goal = target ? target : own;

	if ((!f->window && !target) || !goal)
		return;
	if (!f->window) {
		f->window = frozen ? 0 : goal;
	} else if (goal > f->window) {
		__u32 step = mss > newly_acked / 2 ? mss : newly_acked / 2;
		__u64 raised = (__u64)f->window + step;

		f->window = raised < goal ? raised : goal;
	} else if (!target) {
		f->window = 0;
	} else if (!frozen) {
		f->window = goal;
	}
}

inline_ void on_new_ack(struct rwnd_flow *f, __u32 ack, __u16 field, int enforce)
{
	__u32 newly_acked = ack - f->highest_ack, mss, shift;

	f->acked += newly_acked;
	f->highest_ack = ack;
	put(&f->up_seen, f->up_seen | RWND_STARTED);
	end_wireless_sample(f, ack);
	if (!enforce)
		return;
	mss = mss_of(f);
	shift = shift_of(f);
	step_window(f, newly_acked, (__u32)field << shift, mss);
	if (!f->window || (__s32)(ack - f->edge) > (__s32)mss)
		f->limit = 0;
	else
		f->limit = in_units(f->window > 2 * mss ? f->window : 2 * mss, shift);
}

inline_ void note_edge(struct rwnd_flow *f, __u32 ack, __u32 field)
{
	__u32 edge = ack + (field << shift_of(f));

	if (before(f->edge, edge))
		f->edge = edge;
}

/* The window field that goes on. */
inline_ __u16 forward(struct rwnd_flow *f, __u32 ack, __u16 field)
{
	__u32 shift = shift_of(f), held = f->edge - ack, allowed = field;

	held = (__s32)held > 0 ? in_units(held, shift) : 0;
	if (f->limit) {
		__u32 limit = f->limit > held ? f->limit : held;

		allowed = limit < allowed ? limit : allowed;
	}
	note_edge(f, ack, allowed);
	if (allowed != field)
		f->rewritten++;
	return (__u16)allowed;
}

/* The window field that goes on: s->window unless it must change. */
inline_ __u16 on_uplink(struct rwnd_flow *f, const struct segment *s, int enforce)
{
	int is_new;

	if (unlikely(s->flags & RST)) {
		f->up_seen |= RWND_RST;
		return s->window;
	}
	if (unlikely(s->flags & SYN)) {
		on_uplink_syn(f, s);
		return s->window;
	}
	if (unlikely(s->hands_off))
		f->up_seen |= RWND_HANDS_OFF;
	if (unlikely(!(s->flags & ACK) || !is_manageable(f)))
		return s->window;
	if (unlikely(s->flags & FIN))
		f->up_seen |= RWND_FIN;
	if (unlikely(!enforce)) {
		f->window = 0;
		f->limit = 0;
	}
	if (unlikely(before(f->max_end, s->ack))) {
		note_edge(f, s->ack, s->window);
		return s->window;
	}
	if (unlikely(before(s->ack, f->highest_ack)))
		return forward(f, s->ack, s->window);
	is_new = s->ack != f->highest_ack || !(f->up_seen & RWND_STARTED);
	note_recovery(f, s, is_new);
	if (likely(is_new))
		on_new_ack(f, s->ack, s->window, enforce);
	f->last_window = s->window;
	if (s->has_timestamps)
		begin_wired_sample(f, s->val);
	return forward(f, s->ack, s->window);
}

#endif
