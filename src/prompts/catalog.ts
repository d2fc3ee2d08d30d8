import { findLongRunningAds } from './find-long-running-ads.ts';
import { profileAdvertiser } from './profile-advertiser.ts';

export const prompts = [findLongRunningAds, profileAdvertiser] as const;
