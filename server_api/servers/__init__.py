"""The rules of a server's life. Pure: no Flask, no Kubernetes, no OpenStack, no clock and no I/O of its own."""
