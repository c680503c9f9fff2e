"""What stands between the network and the handlers: the door, the checks of requests, the description of the API."""
