// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title FeeCollector: where every fee of a block goes before it is split.
/// @notice A predeploy that only offers views. The split itself (half burned, half to the treasury,
/// an odd unit burned) is done by the chain at the end of each block and cannot be called. Coins
/// sent here by anyone else stay here.
contract FeeCollector {
    /// @dev Written in genesis.
    address private _treasury;

    /// @notice The account that receives the half that is not burned.
    function treasury() external view returns (address) {
        return _treasury;
    }

    /// @notice Share of a block's fees that is burned, in basis points.
    function burnShareBasisPoints() external pure returns (uint256) {
        return 5_000;
    }

    /// @notice What fees of the given sum would be split into.
    /// @param feesAtoken sum of a block's fees
    function split(uint256 feesAtoken) external pure returns (uint256 burnedAtoken, uint256 treasuryAtoken) {
        treasuryAtoken = feesAtoken / 2;
        burnedAtoken = feesAtoken - treasuryAtoken;
    }

    /// @notice Takes coins like an ordinary account.
    receive() external payable {}
}
