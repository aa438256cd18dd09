-- Reads the number of an account's last entry. One row; its value is NULL where there is none. Index: the primary key.
SELECT max(number) FROM credit_entry WHERE account = $1;
