/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rate of a PBE sender, in whole numbers: what crates/laws/src/pbe/{sender,cellular}.rs decide, with their states, rules and
 * bounds. Rates are octets a second, times are microseconds.
 *
 * Deviations from the law: it is asked at ACKs alone, so a rise goes in their steps. The round trip, rounds, and the most that was
 * delivered in ten of them are those of the kernel's BBR.
 */
#ifndef LASTHOP_PBE_LAW_H
#define LASTHOP_PBE_LAW_H

#include <linux/types.h>

/* The law's parameters and constants. */
#include "pbe_shared.h"

/* Places for rounds: a power of two, so that the verifier sees that a place is one. */
#define PLACES 16
#define SECOND 1000000

/*
 * Segments beyond two BDP while another place is the narrowest. The law has none; but a slow connection that delayed ACKs hold back
 * would measure that, and stay as slow.
 */
#ifndef ALLOWANCE
#define ALLOWANCE 0
#endif

/* The receiver tells nothing; it will; the rise; the cell is the narrowest place; another one is. */
enum pbe_state { PLAIN, WAITING, START, WIRELESS, INTERNET };
/* What is done while another place is the narrowest. */
enum pbe_phase { DRAIN, CYCLE, PROBING_RTT };

/* A connection. */
struct pbe {
	/* What the receiver has told last, and whether it has. */
	__u64 available;
	__u64 fair;
	/* What is decided. */
	__u64 rate;
	__u32 cwnd;
	__u8 state;
	__u8 known;
	__u8 restart;
	__u8 elsewhere;
	__u8 acked;
	/* The window grows again after a timeout. */
	__u8 repairing;
	/* A rise is over in which more than the initial window was sent. */
	__u8 risen;
	/* Round trips of ACKs that could have told something and did not. */
	__u8 missed;
	__u64 silent_since;
	/* A rise: from where, since when, and what had been sent by then. */
	__u64 from;
	__u64 began;
	__u64 sent_before;
	/* What was sent in rises. */
	__u64 sent;
	/* Until when the first capacity is waited for; 0: the first ACK has not come. */
	__u64 until;
	/* While another place is the narrowest. */
	__u64 phase_ends;
	__u64 phase_began;
	__u64 best[PLACES];
	/* The most that was delivered when the last probe began; 0: there was none. */
	__u64 before;
	__u32 best_round;
	__u8 phase;
	__u8 cycle;
	__u8 round_done;
	/* Segments of the initial window. */
	__u8 initial;
	/* When the least round trip was seen. */
	__u64 rtt_seen;
};

/* What the kernel knows of the path when the law is asked. */
struct path {
	__u64 now;
	/* The most that was delivered in the last ten rounds. */
	__u64 delivered;
	/* The last sample; 0: there is none. */
	__u64 newest;
	/* What the connection has sent so far. */
	__u64 sent;
	__u32 rtt;
	__u32 mss;
	__u32 round;
	/* In segments. */
	__u32 in_flight;
	__u32 newly_delivered;
	__u8 round_began;
	__u8 app_limited;
	/* Something is repaired: such ACKs may have no room for the option. */
	__u8 in_recovery;
	/* The least round trip has just been measured anew. */
	__u8 rtt_renewed;
};

/* Words of the parameters, which the agent writes. */
#define PARAMS (sizeof(struct pbe_params) / sizeof(__u64))

/* What the operator has set. */
static __always_inline struct pbe_params chosen(const volatile __u64 words[PARAMS])
{
	struct pbe_params params;
	int i;

	for (i = 0; i < PARAMS; i++)
		((__u64 *)&params)[i] = words[i];
	return params;
}

static __always_inline __u64 least(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

static __always_inline __u64 most_of(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* So many segments in an RTprop. */
static __always_inline __u64 segments(const struct path *path, __u64 count)
{
	return count * path->mss * SECOND / path->rtt;
}

/* The most that was delivered while another place was the narrowest. */
static __always_inline __u64 bandwidth(const struct pbe *pbe)
{
	__u64 best = 0;
	int i;

	for (i = 0; i < PLACES; i++)
		best = most_of(best, pbe->best[i]);
	return best;
}

/* Folds a sample into it. */
static __always_inline void measure(struct pbe *pbe, __u32 round, __u64 rate)
{
	__u32 i, passed = round - pbe->best_round;

	/* What is too old goes, and rounds that were passed over had no sample. */
	for (i = 1; i <= PLACES && i <= passed; i++) {
		pbe->best[(pbe->best_round + i) % PLACES] = 0;
		pbe->best[(pbe->best_round + i - ROUNDS) % PLACES] = 0;
	}
	pbe->best_round = round;
	pbe->best[round % PLACES] = most_of(pbe->best[round % PLACES], rate);
}

static __always_inline void measure_anew(struct pbe *pbe, __u32 round, __u64 rate)
{
	int i;

	for (i = 0; i < PLACES; i++)
		pbe->best[i] = 0;
	pbe->best_round = round;
	measure(pbe, round, rate);
}

/* What is known of the cell holds. */
static __always_inline void heard(struct pbe *pbe)
{
	pbe->silent_since = 0;
	pbe->missed = 0;
}

/* A rise is over; if it had something to send, the first one of the connection is done. */
static __always_inline void end_rise(struct pbe *pbe, const struct path *path)
{
	if (pbe->state != START || path->sent < pbe->sent_before)
		return;
	pbe->sent += path->sent - pbe->sent_before;
	pbe->sent_before = path->sent;
	if (pbe->sent > (__u64)path->mss * pbe->initial)
		pbe->risen = 1;
}

static __always_inline void begin_rise(struct pbe *pbe, const struct path *path, __u64 from)
{
	pbe->from = from;
	pbe->began = path->now;
	pbe->sent_before = path->sent;
	pbe->state = START;
}

/* Nothing is known of the cell any more. */
static __always_inline void fall_back(struct pbe *pbe, const struct path *path)
{
	end_rise(pbe, path);
	pbe->state = PLAIN;
	pbe->known = 0;
}

/* Another place is the narrowest: the queue that came of it is drained first. */
static __always_inline void leave_cell(struct pbe *pbe, const struct path *path)
{
	end_rise(pbe, path);
	measure_anew(pbe, path->round, path->newest ? path->newest : path->delivered);
	pbe->before = 0;
	pbe->phase = DRAIN;
	pbe->phase_ends = path->now + path->rtt;
	pbe->state = INTERNET;
}

/* The cycle begins anywhere but where it drains. */
static __always_inline void begin_cycle(struct pbe *pbe, const struct path *path)
{
	__u8 first = bpf_get_prandom_u32() % (PHASES - 1);

	pbe->cycle = first ? first + 1 : 0;
	pbe->phase_began = path->now;
	pbe->phase = CYCLE;
}

/* The receiver tells of its cell. */
static __always_inline void pbe_on_cell(struct pbe *pbe, const struct path *path, __u64 available, __u64 fair, __u8 flags)
{
	__u8 restart = !!(flags & OPTION_RESTART), more;

	if (!available) {
		/* It will tell, and does not know yet; or it does not know any more. */
		if (pbe->state == PLAIN && !pbe->acked) {
			pbe->state = WAITING;
			pbe->until = 0;
		} else if (pbe->state > WAITING) {
			fall_back(pbe, path);
		}
		return;
	}
	more = pbe->known && !pbe->restart && fair > pbe->fair;
	pbe->known = 1;
	pbe->available = available;
	pbe->fair = fair;
	pbe->restart = restart;
	pbe->elsewhere = !!(flags & OPTION_ELSEWHERE);
	heard(pbe);
	switch (pbe->state) {
	case INTERNET:
		if (!pbe->elsewhere)
			pbe->state = WIRELESS;
		break;
	case START:
	case WIRELESS:
		if (pbe->elsewhere)
			leave_cell(pbe, path);
		else if (pbe->state == WIRELESS && restart && more)
			begin_rise(pbe, path, pbe->rate);
		break;
	default:
		begin_rise(pbe, path, most_of(path->delivered, segments(path, pbe->initial)));
	}
}

/* Time passes in the cycle. */
static __always_inline void turn_cycle(struct pbe *pbe, const struct path *path, const struct pbe_params *params)
{
	__u64 known = bandwidth(pbe);
	__u8 last = pbe->cycle;

	if (path->now > pbe->phase_began + path->rtt) {
		pbe->cycle = (pbe->cycle + 1) % PHASES;
		pbe->phase_began = path->now;
		/* It was drained. */
		if (pbe->cycle == 2 && params->keep_probing && pbe->before && known * 8 >= pbe->before * 9)
			pbe->cycle = 0;
	}
	if (!pbe->cycle && (last || !pbe->before))
		pbe->before = known;
}

/* An ACK while another place is the narrowest. */
static __always_inline void on_ack_elsewhere(struct pbe *pbe, const struct path *path, const struct pbe_params *params,
					     int expired)
{
	if (path->newest &&
	    ((pbe->phase != PROBING_RTT && !path->app_limited) || path->newest >= bandwidth(pbe)))
		measure(pbe, path->round, path->newest);
	switch (pbe->phase) {
	case DRAIN:
		if (path->now < pbe->phase_ends)
			break;
		/* What was delivered before was no measure. */
		if (path->newest)
			measure_anew(pbe, path->round, path->newest);
		begin_cycle(pbe, path);
		break;
	case CYCLE:
		if (expired) {
			pbe->phase = PROBING_RTT;
			pbe->phase_ends = 0;
			pbe->round_done = 0;
		} else {
			turn_cycle(pbe, path, params);
		}
		break;
	default:
		if (!pbe->phase_ends) {
			if (path->in_flight <= LEAST_SEGMENTS)
				pbe->phase_ends = path->now + PROBE_RTT;
			break;
		}
		pbe->round_done |= path->round_began;
		if (pbe->round_done && path->now > pbe->phase_ends)
			begin_cycle(pbe, path);
	}
}

/* An ACK has come. */
static __always_inline void pbe_on_ack(struct pbe *pbe, const struct path *path, const struct pbe_params *params)
{
	int expired = pbe->rtt_seen && path->now > pbe->rtt_seen + RTT_HOLDS;
	__u64 missed;

	pbe->acked = 1;
	if (path->rtt_renewed)
		pbe->rtt_seen = path->now;
	if (path->in_recovery)
		heard(pbe);
	if (!pbe->silent_since)
		pbe->silent_since = path->now;
	missed = (path->now - pbe->silent_since) / path->rtt;
	pbe->missed = least(missed, FORGOTTEN);
	if (pbe->state == WAITING && !pbe->until)
		pbe->until = path->now + PATIENCE * (__u64)path->rtt;
	if (pbe->state == INTERNET)
		on_ack_elsewhere(pbe, path, params, expired);
	if (pbe->state > WAITING && pbe->missed >= FORGOTTEN)
		fall_back(pbe, path);
	if (pbe->repairing)
		pbe->cwnd += path->newly_delivered;
}

/* Something is sent, and nothing is in flight. */
static __always_inline void pbe_on_idle(struct pbe *pbe, const struct path *path, const struct pbe_params *params)
{
	end_rise(pbe, path);
	if (!pbe->known)
		return;
	/* The rise had nothing to send. */
	if (pbe->state == START)
		pbe->began = path->now;
	else if (pbe->state == WIRELESS && path->delivered * 2 < least(pbe->fair, params->most)) {
		begin_rise(pbe, path, segments(path, pbe->initial));
		/* The segment that begins it does not count. */
		pbe->sent_before += path->mss;
	}
}

/* The timer has expired; the kernel has made the window as small as this. */
static __always_inline void pbe_on_timeout(struct pbe *pbe, __u32 cwnd)
{
	pbe->repairing = 1;
	pbe->cwnd = cwnd;
}

/* How fast to send while another place is the narrowest. */
static __always_inline __u64 pacing_elsewhere(const struct pbe *pbe, __u64 fair)
{
	__u64 known = bandwidth(pbe), probe = least(known + known / 4, fair), rest;

	if (pbe->phase == DRAIN)
		return known / 2;
	if (pbe->phase == PROBING_RTT || pbe->cycle > 1)
		return known;
	if (!pbe->cycle)
		return probe;
	rest = 2 * known > probe ? 2 * known - probe : 0;
	return least(most_of(rest, known - known / 4), known);
}

/* Rate and window that follow from all that is known. */
static __always_inline void pbe_refresh(struct pbe *pbe, const struct path *path, const struct pbe_params *params)
{
	__u64 believed = path->delivered * 2 + segments(path, pbe->initial);
	__u64 available = least(pbe->available, params->most), fair = least(pbe->fair, params->most);
	__u64 rate, risen, window, octets, rise = RISE * (__u64)path->rtt;

	if (pbe->state == WAITING && pbe->until && path->now >= pbe->until)
		pbe->state = PLAIN;
	if (pbe->state == START && path->now >= pbe->began + rise) {
		end_rise(pbe, path);
		pbe->state = WIRELESS;
	}
	switch (pbe->state) {
	case PLAIN:
		return;
	case WAITING:
		rate = segments(path, pbe->initial);
		break;
	case START:
		risen = pbe->from;
		if (fair > risen)
			risen += (fair - risen) * (path->now - pbe->began) / rise;
		rate = least(least(risen, fair), believed + (pbe->risen ? 0 : fair / 2));
		break;
	case WIRELESS:
		rate = least(available, believed);
		break;
	default:
		rate = pacing_elsewhere(pbe, fair);
	}
	if (pbe->missed >= HOLDS)
		rate >>= least(pbe->missed + 1 - HOLDS, FORGOTTEN - HOLDS);
	rate = most_of(rate, segments(path, 2));
	pbe->rate = most_of(rate, 1);
	if (pbe->state != INTERNET)
		octets = pbe->rate * (path->rtt + params->headroom) / SECOND + path->mss - 1;
	else if (pbe->phase == PROBING_RTT)
		octets = 0;
	else
		octets = 2 * bandwidth(pbe) * path->rtt / SECOND + (__u64)ALLOWANCE * path->mss;
	window = most_of(least(octets / path->mss, 1 << 20), LEAST_SEGMENTS);
	if (pbe->repairing && pbe->cwnd >= window)
		pbe->repairing = 0;
	if (!pbe->repairing)
		pbe->cwnd = window;
}

#endif
