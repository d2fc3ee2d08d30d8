import { compareAdvertisers } from './compare-advertisers.ts';
import { findChanges } from './find-changes.ts';
import { findLongRunningAds } from './find-long-running-ads.ts';
import { profileAdvertiser } from './profile-advertiser.ts';

export const prompts = [profileAdvertiser, compareAdvertisers, findChanges, findLongRunningAds] as const;
