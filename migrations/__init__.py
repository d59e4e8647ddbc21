"""Ordered steps that bring the Kubernetes API up to this version; docs/migrations.md says how to write one."""
