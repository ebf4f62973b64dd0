from zeroproof_report import units


def test_three_digits_in_the_unit_that_fits() -> None:
    assert units.seconds(0) == "0 s"
    assert units.seconds(12.34e-6) == "12.3 µs"
    assert units.seconds(999.7e-6) == "1.00 ms"
    assert units.seconds(5000) == "5000 s"
    assert units.rate(1.25e9) == "1.25 GB/s"
    assert units.traffic(0) == "0 B"
    assert units.traffic(96e6) == "96.0 MB"


def test_sizes_in_powers_of_1024() -> None:
    assert units.size(512) == "512 B"
    assert units.size(4096) == "4 KiB"
    assert units.size(1.5 * 2**20) == "1.50 MiB"
    assert units.size(2**50) == "1024 TiB"


def test_parts_and_parameters() -> None:
    assert units.per_cent(0.0312) == "3.1 %"
    assert units.per_cent(0.31) == "31 %"
    assert units.phi(4_000_000) == "4 million"
    assert units.phi(1_500_000_000) == "1.5 billion"
    assert units.phi(1000) == "1000"


def test_three_digits() -> None:
    shown = ("0.00", "0.312", "1.00", "9.99", "10.0", "100", "1234")
    values = (0.0, 0.3122, 0.9999, 9.994, 9.996, 99.96, 1234.0)
    assert tuple(units.three_digits(value) for value in values) == shown


def test_groups_and_signs() -> None:
    assert units.grouped(1234567).split("\N{NARROW NO-BREAK SPACE}") == ["1", "234", "567"]
    assert units.grouped(999.6) == "1\N{NARROW NO-BREAK SPACE}000"
    assert units.signed_per_cent(0.0) == "0"
    assert units.signed_per_cent(-0.0123) == "-1.23 %"
