// SPDX-License-Identifier: Apache-2.0
pragma solidity >=0.8.17;

/// @title Bech32: one account, two ways to write it.
/// @custom:address 0x0000000000000000000000000000000000000400
interface IBech32 {
    /// @notice An account as bech32.
    /// @param prefix `addr` for accounts, `addrvaloper` for operators, `addrvalcons` for keys of consensus
    function hexToBech32(address addr, string calldata prefix) external pure returns (string memory bech32Address);

    /// @notice The account that a bech32 text names, whatever its prefix.
    function bech32ToHex(string calldata bech32Address) external pure returns (address addr);
}
