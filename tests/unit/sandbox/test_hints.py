import shlex

from server_api.sandbox import hints
from server_api.servers.naming import server_id

ENVIRONMENT = {
    "SERVER_API_URL": "http://127.0.0.1:6080",
    "SERVER_API_TOKEN_USER": "the-token",
    "SERVER_API_NETWORK_ID": "aaaabbbb-1234-5678-9abc-def012345678",
    "SERVER_API_FLAVOR_ID": "c0000000-0000-4000-8000-000000000001",
    "SERVER_API_IMAGE_ID": "c0000000-0000-4000-8000-000000000002",
    "SERVER_API_SECURITY_GROUP_ID": "c0000000-0000-4000-8000-000000000003",
}


def test_five_curl_lines_carry_the_id_the_server_will_have() -> None:
    lines = hints.curl_lines(ENVIRONMENT)
    urls = [shlex.split(line)[-1] for line in lines]
    servers = "http://127.0.0.1:6080/api/v2/servers"
    one = f"{servers}/{server_id(ENVIRONMENT['SERVER_API_NETWORK_ID'], hints.SERVER_NAME)}"
    assert urls == [servers, servers, one, f"{one}/stop", one]


def test_every_line_works_in_a_shell_that_knows_nothing() -> None:
    for line in hints.curl_lines(ENVIRONMENT):
        assert "$" not in line
        assert "Authorization: Bearer the-token" in shlex.split(line)
