// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The law of the sender alone: one event a run, everything in memory that the test sees. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "../../../../bpf/pbe_option.h"
#include "../../../../bpf/pbe_law.h"

enum event { CELL, ACK, IDLE, TIMEOUT };

struct pbe pbe = {};
struct path path = {};
__u64 words[PARAMS] = {};
__u32 event = 0;
/* What the cell has: octets a second, and flags of the option. */
__u64 available = 0;
__u64 fair = 0;
__u32 flags = 0;
/* The window that the kernel has set at a timeout. */
__u32 cwnd = 0;
/* What a code of twelve bits stands for. */
__u32 code = 0;
__u64 stands_for = 0;

SEC("syscall")
int step(void *ctx)
{
	struct pbe_params params = chosen(words);

	switch (event) {
	case CELL:
		pbe_on_cell(&pbe, &path, available, fair, flags);
		break;
	case ACK:
		pbe_on_ack(&pbe, &path, &params);
		break;
	case IDLE:
		pbe_on_idle(&pbe, &path, &params);
		break;
	case TIMEOUT:
		pbe_on_timeout(&pbe, cwnd);
		break;
	}
	pbe_refresh(&pbe, &path, &params);
	return 0;
}

SEC("syscall")
int decode(void *ctx)
{
	stands_for = octets_a_second(code);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
