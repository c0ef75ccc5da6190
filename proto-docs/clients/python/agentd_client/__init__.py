"""A client for agentd: typed calls, and subscriptions that survive a lost connection."""

from .client import Client, ConnectionLost, RpcError, default_socket

__all__ = ["Client", "ConnectionLost", "RpcError", "default_socket"]
