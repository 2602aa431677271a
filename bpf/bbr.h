/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel's BBR as eBPF programs may call it (tcp_bbr.c), the struct by which they are a congestion control, and of the kernel's
 * structs what is used of them.
 */
#ifndef LASTHOP_BBR_H
#define LASTHOP_BBR_H

#include <linux/types.h>

#define NAME_LEN 16
/* Users without privileges may choose it. */
#define TCP_CONG_NON_RESTRICTED 1

/* tcp_ca_state: nothing is lost and nothing is repaired; the timer has expired. */
#define CA_OPEN 0
#define CA_LOSS 4

/* BBR counts segments a microsecond, in units of 2^-24. */
#define BW_SCALE 24

enum tcp_ca_event { CA_EVENT_TX_START };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock {
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
};

struct inet_connection_sock {
	__u8 icsk_ca_state : 5;
	__u64 icsk_ca_priv[13];
};

struct tcp_sock {
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 mss_cache;
	__u32 packets_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 retrans_out;
	__u32 app_limited;
	__u64 bytes_sent;
	__u64 tcp_mstamp;
};

struct rate_sample {
	__s32 delivered;
	long interval_us;
	__u32 acked_sacked;
	__u8 is_app_limited;
};

struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

/* The state of the kernel's BBR, in icsk_ca_priv. */
struct bbr {
	__u32 min_rtt_us;
	__u32 min_rtt_stamp;
	struct minmax bw;
	__u32 rtt_cnt;
};
#pragma clang attribute pop

struct tcp_congestion_ops {
	void (*init)(struct sock *sk);
	__u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
	__u32 (*sndbuf_expand)(struct sock *sk);
	__u32 flags;
	char name[NAME_LEN];
};

extern void bbr_init(struct sock *sk) __ksym;
extern void bbr_main(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs) __ksym;
extern __u32 bbr_sndbuf_expand(struct sock *sk) __ksym;
extern __u32 bbr_undo_cwnd(struct sock *sk) __ksym;
extern void bbr_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern __u32 bbr_ssthresh(struct sock *sk) __ksym;
extern __u32 bbr_min_tso_segs(struct sock *sk) __ksym;
extern void bbr_set_state(struct sock *sk, __u8 new_state) __ksym;

#endif
