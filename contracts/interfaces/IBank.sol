// SPDX-License-Identifier: Apache-2.0
pragma solidity >=0.8.18;

/// @title Bank: balances and supply of the chain's own coin.
/// @notice The coin is named by 0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE, where there is no contract.
/// @custom:address 0x0000000000000000000000000000000000000804
interface IBank {
    /// @dev An amount of one coin.
    struct Balance {
        address contractAddress;
        uint256 amount;
    }

    /// @notice Coins of an account; empty for none.
    function balances(address account) external view returns (Balance[] memory balances);

    /// @notice Supply of every coin, as the last block left it.
    function totalSupply() external view returns (Balance[] memory totalSupply);

    /// @notice Supply of one coin, as the last block left it; 0 for what is no coin of the chain.
    function supplyOf(address erc20Address) external view returns (uint256 totalSupply);
}
