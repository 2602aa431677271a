// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Gives connections that programs of a cgroup make to the station's agent.
 *
 * Attached to a cgroup. A TCP connection beyond the networks that this machine is in is led to the agent's listener
 * instead, until the time that the agent sets ever anew while it hears its proxy, and where it was meant to go is kept: for the agent by the address that
 * it comes from, and for the program, which is told that it is connected to what it asked for. Other network
 * namespaces, which have another loopback than the agent, are left alone, and so are sockets bound to a device.
 */
#include <linux/bpf.h>
#include <linux/in.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Let the system call go on. */
#define PASS 1
#define MAPPED bpf_htonl(0xffff)
#define LOOPBACK bpf_htonl(INADDR_LOOPBACK)

/* The agent's network namespace, and its listeners at 127.0.0.1 and ::1 (0: none). */
const volatile __u64 netns = 0;
const volatile __u16 port4 = 0;
const volatile __u16 port6 = 0;

/* All in network byte order; IPv4 addresses as ::ffff:a.b.c.d. */
struct address {
	__u32 ip[4];
};

struct place {
	struct address address;
	__u16 port;
	__u16 zero;
};

struct meant {
	struct place to;
	/* Led to 127.0.0.1, not to ::1. */
	__u32 v4;
};

struct network {
	__u32 prefixlen;
	struct address address;
};

/* Until when (ns, CLOCK_MONOTONIC): an agent that stands still takes nobody with it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} serving SEC(".maps");

/* What is left alone: networks that this machine is in, and the proxy's address. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct network);
	__type(value, __u32);
} own SEC(".maps");

/* Services that the proxy has forbidden. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct place);
	__type(value, __u32);
} passed SEC(".maps");

/* Where sockets were meant to go, by their cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct meant);
} meant SEC(".maps");

/* The same by the address that they come from, for the agent. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct place);
	__type(value, struct place);
} asked SEC(".maps");

/* What never leaves the link, or this machine. */
static __always_inline int near4(__u32 ip)
{
	__u32 host = bpf_ntohl(ip);

	return host >> 24 == 0 || host >> 24 == 127 || host >> 28 >= 0xe || host >> 16 == 0xa9fe;
}

static __always_inline int near6(const struct address *to)
{
	__u32 first = bpf_ntohl(to->ip[0]);

	return first >> 24 == 0xff || first >> 22 == 0xfe80 >> 6 || (!to->ip[0] && !to->ip[1] && !to->ip[2]);
}

/* A socket may be connected again, elsewhere. */
static __always_inline void forget(struct bpf_sock_addr *ctx)
{
	__u64 cookie = bpf_get_socket_cookie(ctx);

	bpf_map_delete_elem(&meant, &cookie);
}

/* True if a connection is to be led to the agent; keeps where it was meant to go. */
static __always_inline int divert(struct bpf_sock_addr *ctx, struct meant *where)
{
	struct network host = { .prefixlen = 128, .address = where->to.address };
	__u64 cookie = bpf_get_socket_cookie(ctx), *until;
	__u32 zero = 0;

	until = bpf_map_lookup_elem(&serving, &zero);
	if (!until || *until <= bpf_ktime_get_ns())
		return 0;
	if (ctx->protocol != IPPROTO_TCP || bpf_get_netns_cookie(ctx) != netns)
		return 0;
	if (ctx->sk && ctx->sk->bound_dev_if)
		return 0;
	if (bpf_map_lookup_elem(&own, &host) || bpf_map_lookup_elem(&passed, &where->to))
		return 0;
	return !bpf_map_update_elem(&meant, &cookie, where, BPF_ANY);
}

SEC("cgroup/connect4")
int divert_connect4(struct bpf_sock_addr *ctx)
{
	struct meant where = { .v4 = 1 };

	forget(ctx);
	where.to.address.ip[2] = MAPPED;
	where.to.address.ip[3] = ctx->user_ip4;
	where.to.port = ctx->user_port;
	if (near4(ctx->user_ip4) || !divert(ctx, &where))
		return PASS;
	ctx->user_ip4 = LOOPBACK;
	ctx->user_port = port4;
	return PASS;
}

SEC("cgroup/connect6")
int divert_connect6(struct bpf_sock_addr *ctx)
{
	struct meant where = {};
	struct address *to = &where.to.address;

	forget(ctx);
	to->ip[0] = ctx->user_ip6[0];
	to->ip[1] = ctx->user_ip6[1];
	to->ip[2] = ctx->user_ip6[2];
	to->ip[3] = ctx->user_ip6[3];
	where.to.port = ctx->user_port;
	where.v4 = !to->ip[0] && !to->ip[1] && to->ip[2] == MAPPED;
	if (where.v4 ? near4(to->ip[3]) : !port6 || near6(to))
		return PASS;
	if (!divert(ctx, &where))
		return PASS;
	ctx->user_ip6[0] = 0;
	ctx->user_ip6[1] = 0;
	ctx->user_ip6[2] = where.v4 ? MAPPED : 0;
	ctx->user_ip6[3] = where.v4 ? LOOPBACK : bpf_htonl(1);
	ctx->user_port = where.v4 ? port4 : port6;
	return PASS;
}

/* The socket has its port now, and its first segment has not left. */
SEC("sockops")
int divert_sockops(struct bpf_sock_ops *ctx)
{
	/*
	 * Volatile, and all of them: the verifier wants each field loaded from the context itself, where compilers would
	 * choose an address first.
	 */
	volatile struct bpf_sock_ops *fields = ctx;
	struct place from = {};
	struct meant *where;
	__u32 ip4, port;
	__u64 cookie;

	if (ctx->op != BPF_SOCK_OPS_TCP_CONNECT_CB)
		return PASS;
	cookie = bpf_get_socket_cookie(ctx);
	where = bpf_map_lookup_elem(&meant, &cookie);
	if (!where)
		return PASS;
	ip4 = fields->local_ip4;
	port = fields->local_port;
	from.address.ip[0] = fields->local_ip6[0];
	from.address.ip[1] = fields->local_ip6[1];
	from.address.ip[2] = fields->local_ip6[2];
	from.address.ip[3] = fields->local_ip6[3];
	if (where->v4)
		from.address = (struct address){ .ip = { 0, 0, MAPPED, ip4 } };
	from.port = bpf_htons(port);
	bpf_map_update_elem(&asked, &from, &where->to, BPF_ANY);
	return PASS;
}

SEC("cgroup/getpeername4")
int divert_getpeername4(struct bpf_sock_addr *ctx)
{
	__u64 cookie = bpf_get_socket_cookie(ctx);
	struct meant *where = bpf_map_lookup_elem(&meant, &cookie);

	if (where) {
		ctx->user_ip4 = where->to.address.ip[3];
		ctx->user_port = where->to.port;
	}
	return PASS;
}

SEC("cgroup/getpeername6")
int divert_getpeername6(struct bpf_sock_addr *ctx)
{
	__u64 cookie = bpf_get_socket_cookie(ctx);
	struct meant *where = bpf_map_lookup_elem(&meant, &cookie);

	if (where) {
		ctx->user_ip6[0] = where->to.address.ip[0];
		ctx->user_ip6[1] = where->to.address.ip[1];
		ctx->user_ip6[2] = where->to.address.ip[2];
		ctx->user_ip6[3] = where->to.address.ip[3];
		ctx->user_port = where->to.port;
	}
	return PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
