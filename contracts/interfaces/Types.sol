// SPDX-License-Identifier: Apache-2.0
pragma solidity >=0.8.17;

/// @dev Coins of one denomination. The chain has one: `atoken`.
struct Coin {
    string denom;
    uint256 amount;
}

/// @dev Coins with decimals: `amount / 10^precision`.
struct DecCoin {
    string denom;
    uint256 amount;
    uint8 precision;
}

/// @dev A decimal number: `value / 10^precision`.
struct Dec {
    uint256 value;
    uint8 precision;
}

/// @dev Which part of a list is asked for.
struct PageRequest {
    /// `nextKey` of the page before; counts instead of `offset` where it is not empty.
    bytes key;
    /// Items that are passed over.
    uint64 offset;
    /// Items at most; 0 stands for 100.
    uint64 limit;
    /// Whether `total` is wanted.
    bool countTotal;
    /// Last ones first.
    bool reverse;
}

/// @dev What follows a page.
struct PageResponse {
    /// `key` of the next page; empty behind the last one.
    bytes nextKey;
    /// Items of the list, where `countTotal` was set.
    uint64 total;
}
