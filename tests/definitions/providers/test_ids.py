"""Call ids: kept when they are the provider's and new, else minted; the same when replayed."""

from __future__ import annotations

from definitions.ids import CallIds, minted


def test_an_id_of_the_provider_that_is_new_is_kept() -> None:
    assert CallIds("c1", "a1").claim("call_0", 0) == "call_0"


def test_a_missing_and_an_empty_id_are_minted() -> None:
    ids = CallIds("c1", "a1")
    first, second = ids.claim(None, 0), ids.claim("", 1)
    assert first
    assert second
    assert first != second


def test_an_id_that_is_in_use_elsewhere_or_here_is_minted() -> None:
    ids = CallIds("c1", "a1", {"call_0"})
    elsewhere = ids.claim("call_0", 0)
    again = [ids.claim("call_1", 1), ids.claim("call_1", 2)]
    assert len({"call_0", elsewhere, *again}) == 4
    assert again[0] == "call_1"


def test_a_minted_id_depends_on_conversation_attempt_and_place_alone() -> None:
    told = {minted(c, a, place) for c in ("c1", "c2") for a in ("a1", "a2") for place in (0, 1)}
    assert len(told) == 8
    assert CallIds("c1", "a1").claim("", 3) == CallIds("c1", "a1", {"x"}).claim(None, 3)
    assert minted("c1", "a1", 0) == "call_908a47a83e63d9f9d4b55d9e"  # as long as logs are read


def test_boundaries_of_what_is_named_count() -> None:
    assert minted("ab", "c", 0) != minted("a", "bc", 0)
    assert minted("a", "b", 1) != minted("a", "b", "1")


def test_the_provider_id_leads_to_its_first_call_and_an_alias_to_its_own() -> None:
    ids = CallIds("c1", "a1", {"call_0"})
    ours = ids.claim("call_0", 0)
    ids.claim("call_0", 1)
    ids.alias("fc_0", ours)
    ids.alias("fc_0", "another")
    assert ids.find("call_0") == ours
    assert ids.find("fc_0") == ours
    assert ids.find("nobody") is None


def test_an_id_that_a_provider_made_like_ours_is_given_once() -> None:
    for first, second in ((minted("c1", "a1", 1), None), (None, minted("c1", "a1", 0))):
        ids = CallIds("c1", "a1")
        one, two = ids.claim(first, 0), ids.claim(second, 1)
        assert one != two
        assert two.startswith("call_")
        again = CallIds("c1", "a1")
        assert (again.claim(first, 0), again.claim(second, 1)) == (one, two)
