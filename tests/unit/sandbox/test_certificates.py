from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from server_api.sandbox import certificates


def test_a_services_certificate_is_signed_by_the_authority_beside_it_and_its_key_is_its_owners(tmp_path: Path) -> None:
    certificate_path, key_path = certificates.ensured(tmp_path, "unikorn-compute")

    certificate = x509.load_pem_x509_certificate(certificate_path.read_bytes())
    authority = x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes())
    certificate.verify_directly_issued_by(authority)
    key = load_pem_private_key(key_path.read_bytes(), password=None)
    assert key.public_key() == certificate.public_key()
    assert [name.value for name in certificate.subject] == ["unikorn-compute"]
    assert key_path.stat().st_mode & 0o777 == 0o600


def test_what_is_there_is_kept_and_what_is_missing_is_made_anew(tmp_path: Path) -> None:
    certificate, key = certificates.ensured(tmp_path, "unikorn-compute")
    before = certificate.read_text()

    certificates.ensured(tmp_path, "unikorn-compute")
    assert certificate.read_text() == before

    key.unlink()
    certificates.ensured(tmp_path, "unikorn-compute")
    assert key.exists()
    assert certificate.read_text() != before
